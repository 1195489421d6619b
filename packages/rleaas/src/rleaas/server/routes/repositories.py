"""Routes about the repositories of environments: check, save, load, look into."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from fastapi import APIRouter, Depends
from rlcore import InvalidRequestError, NotFoundError, Secret

from rleaas.server import render
from rleaas.server.access import Caller, CallerOf, require_user
from rleaas.server.failures import documented
from rleaas.server.git import Remote
from rleaas.server.routes.bodies import JsonObject
from rleaas.server.routes.environment_bodies import CheckRepository, SaveRepository
from rleaas.server.routes.repeats import Once, RepeatableRoute
from rleaas.server.store import audit, environments, repositories

router = APIRouter(
    route_class=RepeatableRoute,
    tags=["repositories"],
    dependencies=[Depends(require_user)],
    responses=documented(401),
)

T = TypeVar("T")


@router.post("/api/repo/validate", dependencies=[Once], responses=documented(422))
def check_repository(body: CheckRepository, caller: Caller) -> JsonObject:
    """Ask a repository for its branch; nothing is kept."""
    token = Secret(body.token) if body.token and body.authType != "none" else None
    remote = Remote(body.repoUrl, body.branch, body.username, token)
    try:
        commit = caller.state.git.head(remote)
    except InvalidRequestError as error:
        return {"ok": False, "message": error.detail, "code": error.code}
    return {"ok": True, "message": f"branch {body.branch!r} is at {commit}", "commit": commit}


@router.put("/api/environments/{env}/repo", responses=documented(404, 422))
def save_repository(env: str, body: SaveRepository, caller: Caller) -> JsonObject:
    """Keep where the code of an environment is; its token is encrypted and never given back."""
    given = repositories.Repository(
        url=body.repoUrl,
        provider=body.provider,
        branch=body.branch,
        context_path=body.contextPath,
        auth_type=body.authType,
        username=body.username,
        token=body.token,
    )
    with caller.write() as session:
        row = environments.find(session, env)
        saved = repositories.save(session, row, given, caller.state.keys)
        audit.record(
            session,
            caller,
            action="environment.repository_saved",
            subject=f"environment:{row.id}",
            environment_name=row.name,
            data={"provider": given.provider, "url": saved.url, "branch": given.branch},
        )
        return {"saved": True, **repositories.shown(saved)}


@router.get("/api/environments/{env}/repo", responses=documented(404))
def load_repository(env: str, caller: Caller) -> JsonObject:
    """Where the code of an environment is, without the token."""
    with caller.read() as session:
        return repositories.shown(repositories.find(session, environments.find(session, env)))


@router.post(
    "/api/environments/{env}/repo/validate", dependencies=[Once], responses=documented(404, 422)
)
def check_saved_repository(env: str, caller: Caller) -> JsonObject:
    """Ask the saved repository for its branch, with the token that is kept."""
    try:
        commit = _asked(env, caller, caller.state.git.head)
    except NotFoundError:
        raise
    except InvalidRequestError as error:
        _note(env, caller, {"ok": False, "message": error.detail})
        return {"ok": False, "message": error.detail, "code": error.code}
    _note(env, caller, {"ok": True, "commit": commit})
    return {"ok": True, "message": f"the branch is at {commit}", "commit": commit}


@router.get("/api/environment/{env}/analyze", responses=documented(404, 422))
def analyze_environment(env: str, caller: Caller) -> JsonObject:
    """What is known of an environment's code and contract; its repository is looked into now."""
    with caller.read() as session:
        version = environments.find_version(session, env)
        shown = render.environment(version)
    found: JsonObject = {
        "name": shown["name"],
        "version": shown["version"],
        "source": shown["source"],
        "sdk": shown.get("sdk"),
        "system": shown.get("system"),
        "category": shown["category"],
        "domain": shown["domain"],
        "contract": shown["contract"],
        "local_path": None,
        "repository": None,
        "commit": None,
        "readme_raw": "",
        "pyproject": "",
        "files": [],
        "files_truncated": False,
        "endpoints": [{"method": "GET", "path": f"/api/environments/{shown['id']}/endpoint"}],
        "models": {},
    }
    try:
        snapshot = _asked(str(shown["id"]), caller, caller.state.git.snapshot)
    except NotFoundError:
        return found  # it has no repository; what there is is above
    with caller.read() as session:
        row = environments.find(session, str(shown["id"]))
        found["repository"] = repositories.shown(repositories.find(session, row))
    return {
        **found,
        "commit": snapshot.commit,
        "readme_raw": snapshot.readme,
        "pyproject": snapshot.pyproject,
        "files": [{"path": path, "size": size} for path, size in snapshot.files],
        "files_truncated": snapshot.truncated,
    }


def _asked(env: str, caller: CallerOf, ask: Callable[[Remote], T]) -> T:
    with caller.read() as session:
        row = repositories.find(session, environments.find(session, env))
        remote = repositories.remote(row, caller.state.keys)
    return ask(remote)


def _note(env: str, caller: CallerOf, check: JsonObject) -> None:
    with caller.write() as session:
        row = repositories.find(session, environments.find(session, env))
        repositories.note_check(row, {"at": datetime.now(UTC).isoformat(), **check})
