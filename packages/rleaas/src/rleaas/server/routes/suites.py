"""Routes about scenario suites, and about the library that scenarios can be taken from."""

from fastapi import APIRouter, Depends
from rlcore import ScenarioNotFound
from sqlalchemy.orm import Session

from rleaas.server import render_catalogue as render
from rleaas.server.access import Caller, CallerOf, require_user
from rleaas.server.failures import documented
from rleaas.server.routes.bodies import JsonObject
from rleaas.server.routes.catalogue_bodies import Cursor, PageSize
from rleaas.server.routes.requests import IdempotencyHeader, idempotency
from rleaas.server.routes.scenario_bodies import SuiteFields, Tiers, Words
from rleaas.server.rules import library as shelf
from rleaas.server.rules.catalogue import SuitePurpose
from rleaas.server.store import audit, catalogue, once, suites
from rleaas.server.store.tables import SuiteRow

router = APIRouter(
    tags=["scenario suites"], dependencies=[Depends(require_user)], responses=documented(401)
)

_SHELF = 2**53
"""Where built-in suites begin among the places of suites: after all that there can be."""
_COLUMNS = frozenset(
    {"id", "type", "name", "purpose", "scenario_ids", "environment", "environment_id"}
)


@router.get("/api/scenario-suites", responses=documented(404, 422))
def list_suites(
    caller: Caller,
    environment: str | None = None,
    purpose: SuitePurpose | None = None,
    limit: PageSize = 0,
    cursor: Cursor = "",
) -> JsonObject:
    """Suites, oldest first; all of them, or a page."""
    return listed(caller, "suites", environment, purpose, limit, cursor)


@router.post("/api/scenario-suites", responses=documented(400, 404, 409, 422))
def create_suite(
    body: SuiteFields, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JsonObject:
    """Add a suite, or change the one with this id; its scenarios have to exist."""
    key = idempotency("scenario_suites", idempotency_key, body.model_dump(exclude_unset=True))
    with caller.write() as session:
        before = once.earlier(session, key)
        if before is not None:
            return before
        reply = put(session, caller, body)
        once.keep(session, key, str(reply["id"]), reply)
    return reply


@router.get("/api/scenario-suites/{suite_id}", responses=documented(404))
def get_suite(suite_id: str, caller: Caller) -> JsonObject:
    """One suite, of the organisation's or built in."""
    shipped = shelf.suite(suite_id)
    if shipped is not None:
        return render.built_in_suite(shipped)
    with caller.read() as session:
        return _rendered(session, suites.find(session, suite_id))


@router.patch("/api/scenario-suites/{suite_id}", responses=documented(400, 404, 422))
def update_suite(suite_id: str, body: SuiteFields, caller: Caller) -> JsonObject:
    """Change the fields that are sent; a suite that differs has the next version."""
    with caller.write() as session:
        suites.require_own(suite_id)
        row = suites.apply(session, suites.find(session, suite_id), _change(body))
        _record(session, caller, row, "updated")
        return _rendered(session, row)


@router.delete("/api/scenario-suites/{suite_id}", responses=documented(404))
def delete_suite(suite_id: str, caller: Caller) -> JsonObject:
    """Delete a suite; its scenarios stay."""
    with caller.write() as session:
        suites.require_own(suite_id)
        return delete(session, caller, suites.find(session, suite_id))


@router.get("/api/scenario-library", responses=documented(422))
def list_library(
    caller: Caller,
    vertical: str | None = None,
    tier: Tiers = "",
    domain: str | None = None,
    tags: Words = "",
    limit: PageSize = 0,
    cursor: Cursor = "",
) -> JsonObject:
    """What can be taken from the library: all, or those of a vertical, tiers, a domain, tags."""
    return library_page(vertical, tier, domain, tags, limit, cursor)


@router.get("/api/scenario-library/{library_id}", responses=documented(404))
def get_from_library(library_id: str, caller: Caller) -> JsonObject:
    """One scenario of the library."""
    found = shelf.find(library_id)
    if found is None:
        raise ScenarioNotFound(
            library_id, hint="GET /api/scenario-library lists what the library has"
        )
    return shelf.entry(found)


def library_page(
    vertical: str | None, tiers: str, domain: str | None, tags: str, limit: int, cursor: str
) -> JsonObject:
    """A page of what the library has of these; its cursor is the place of the next."""
    numbers = [int(one) for one in tiers.split(",") if one]
    words = [word for one in tags.split(",") if (word := one.strip())]
    found = list(shelf.chosen(vertical=vertical, tiers=numbers, domain=domain, tags=words))
    begin = int(cursor or 0)
    end = begin + limit if limit else len(found)
    shown = [shelf.entry(one) for one in found[begin:end]]
    return {
        "scenarios": shown,
        "count": len(shown),
        "total": len(found),
        "cursor": str(end) if end < len(found) else None,
    }


def listed(
    caller: CallerOf,
    envelope: str,
    environment: str | None,
    purpose: str | None,
    limit: int,
    cursor: str,
) -> JsonObject:
    """A page of suites under the name that the route gives it: their own, then the built-in ones.

    Built-in ones are of no environment.
    """
    after = int(cursor or 0)
    shown: list[JsonObject] = []
    following: str | None = None
    if after < _SHELF:
        with caller.read() as session:
            rows, following = suites.page(
                session,
                environment_id=catalogue.environment_id(session, environment),
                purpose=purpose,
                after=after,
                limit=limit,
            )
            names = catalogue.environment_names(session, (row.environment_id for row in rows))
        shown = [render.suite(row, names) for row in rows]
    if following is None and environment is None:
        begin = max(0, after - _SHELF)
        shipped = [one for one in shelf.suites() if purpose in (None, one.purpose)][begin:]
        room = len(shipped) if not limit else limit - len(shown)
        shown += [render.built_in_suite(one) for one in shipped[:room]]
        following = str(_SHELF + begin + room) if room < len(shipped) else None
    return {envelope: shown, "count": len(shown), "cursor": following}


def put(session: Session, caller: CallerOf, body: SuiteFields) -> JsonObject:
    """Add a suite, or change the one with its id."""
    row, is_new = suites.upsert(session, _change(body))
    _record(session, caller, row, "created" if is_new else "updated")
    return _rendered(session, row)


def delete(session: Session, caller: CallerOf, row: SuiteRow) -> JsonObject:
    """Delete the suite; its scenarios stay."""
    session.delete(row)
    _record(session, caller, row, "deleted")
    return {"status": "deleted", "id": row.id}


def _rendered(session: Session, row: SuiteRow) -> JsonObject:
    return render.suite(row, catalogue.environment_names(session, [row.environment_id]))


def _record(session: Session, caller: CallerOf, row: SuiteRow, what: str) -> None:
    audit.record(
        session,
        caller,
        action=f"suite.{what}",
        subject=f"suite:{row.id}",
        data={"version": row.version, "scenarios": len(row.scenario_ids)},
    )


def _change(body: SuiteFields) -> suites.SuiteChange:
    given = body.model_dump(exclude_unset=True)
    return suites.SuiteChange(
        id=body.id,
        name=body.name,
        purpose=body.purpose,
        scenario_ids=body.scenario_ids,
        environment=body.named_environment,
        details={key: value for key, value in given.items() if key not in _COLUMNS},
    )
