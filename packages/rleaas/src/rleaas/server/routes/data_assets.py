"""Routes about data: upload it, give it to environments, take it away."""

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse
from rlcore import ConflictError, ServerFailure
from sqlalchemy.orm import Session

from rleaas.server.access import Caller, CallerOf, Reader, require_reader, require_user
from rleaas.server.artifacts.incoming import Received
from rleaas.server.failures import documented
from rleaas.server.render import moment
from rleaas.server.routes.bodies import JsonObject
from rleaas.server.routes.environment_bodies import AttachData
from rleaas.server.routes.repeats import Once, RepeatableRoute
from rleaas.server.routes.requests import IdempotencyHeader, idempotency
from rleaas.server.store import audit, data_assets, environments, once
from rleaas.server.store.jobs import IdempotencyKey
from rleaas.server.store.tables import DataAssetRow, DataAttachmentRow, EnvironmentRow

router = APIRouter(
    route_class=RepeatableRoute,
    tags=["data"],
    dependencies=[Depends(require_user)],
    responses=documented(401),
)
readable = APIRouter(
    tags=["data"], dependencies=[Depends(require_reader)], responses=documented(401)
)

DIGEST = "x-content-sha256"
Name = Annotated[str, Query(min_length=1, max_length=200, pattern=r"\S")]
Media = Annotated[str, Header(alias="content-type", max_length=100)]


@router.post("/api/data-assets", responses=documented(400, 409, 413, 422))
async def upload_asset(
    request: Request,
    caller: Caller,
    name: Name,
    media_type: Media = "application/octet-stream",
    key: IdempotencyHeader = None,
) -> JsonObject:
    """Keep the request's body as a data asset."""
    files, organisation = caller.state.assets, caller.principal.organisation_id
    with files.incoming(organisation) as incoming:
        async for chunk in request.stream():
            await run_in_threadpool(incoming.write, chunk)
        received = await run_in_threadpool(incoming.complete)
        said: JsonObject = {"name": name, "media_type": media_type, "sha256": received.sha256}
        asked = idempotency("data_assets", key, said)
        return await run_in_threadpool(_keep, caller, asked, name, media_type, received)


@router.get("/api/data-assets")
def list_assets(caller: Caller) -> JsonObject:
    """Every data asset."""
    with caller.read() as session:
        found = [_asset(row) for row in data_assets.page(session)]
    return {"data_assets": found, "count": len(found)}


@router.get("/api/data-assets/{asset_id}", responses=documented(404))
def get_asset(asset_id: str, caller: Caller) -> JsonObject:
    """One data asset."""
    with caller.read() as session:
        return _asset(data_assets.find(session, asset_id))


@readable.get(
    "/api/data-assets/{asset_id}/file",
    response_class=FileResponse,
    responses={200: {"description": "The content as it was uploaded"}, **documented(404)},
)
def get_asset_file(asset_id: str, caller: Reader) -> FileResponse:
    """The content of an asset, with its SHA-256 in a header."""
    with caller.read() as session:
        row = data_assets.find(session, asset_id)
    path = caller.state.assets.path(row.organisation_id, row.sha256)
    if not path.is_file():
        raise ServerFailure(
            f"the content of data asset {row.id!r} is gone from the server's data directory",
            code="asset_file_missing",
            retryable=False,
        )
    # Never shown by a browser as a page of this server, whatever it was uploaded as.
    headers = {DIGEST: row.sha256, "x-content-type-options": "nosniff"}
    return FileResponse(
        path, media_type="application/octet-stream", filename=row.name, headers=headers
    )


@router.delete("/api/data-assets/{asset_id}", responses=documented(404, 409))
def delete_asset(asset_id: str, caller: Caller) -> JsonObject:
    """Delete an asset that no environment is given any more."""
    with caller.write() as session:
        row = data_assets.find(session, asset_id)
        if data_assets.is_attached(session, row):
            raise ConflictError(
                f"data asset {row.id!r} is attached to environments",
                code="asset_in_use",
                hint="Detach it first",
            )
        audit.record(session, caller, action="data_asset.deleted", subject=f"data_asset:{row.id}")
        session.delete(row)
        session.flush()
        # Inside the transaction: no upload of the same bytes comes between.
        if not data_assets.is_kept(session, row.sha256):
            caller.state.assets.remove(row.organisation_id, row.sha256)
    return {"status": "deleted", "id": row.id}


@router.post("/api/environments/{env}/data", dependencies=[Once], responses=documented(404, 422))
def attach_data(env: str, body: AttachData, caller: Caller) -> JsonObject:
    """Give an environment a data asset; given again, its injection is replaced."""
    with caller.write() as session:
        row = environments.find(session, env)
        asset = data_assets.find(session, body.data_asset_id)
        attachment = data_assets.attach(session, row, asset, body.injection_config)
        _note(session, caller, "data_attached", row, asset.id)
        return _attachment(attachment, asset)


@readable.get("/api/environments/{env}/data", responses=documented(404))
def list_attached(env: str, caller: Reader) -> JsonObject:
    """What data an environment is given."""
    with caller.read() as session:
        row = environments.find(session, env)
        found = [_attachment(*pair) for pair in data_assets.attached(session, row)]
    return {"data": found, "count": len(found)}


@router.delete("/api/environments/{env}/data/{asset_id}", responses=documented(404))
def detach_data(env: str, asset_id: str, caller: Caller) -> JsonObject:
    """Take a data asset away from an environment; the asset stays."""
    with caller.write() as session:
        row = environments.find(session, env)
        data_assets.detach(session, row, asset_id)
        _note(session, caller, "data_detached", row, asset_id)
    return {"status": "detached", "data_asset_id": asset_id, "environment_name": row.name}


def _keep(
    caller: CallerOf,
    asked: IdempotencyKey | None,
    name: str,
    media_type: str,
    received: Received,
) -> JsonObject:
    sha256, size = received.sha256, received.size_bytes
    with caller.write() as session:
        done = once.earlier(session, asked)
        if done is not None:
            return done
        row = data_assets.add(session, name=name, media_type=media_type, sha256=sha256, size=size)
        audit.record(
            session,
            caller,
            action="data_asset.uploaded",
            subject=f"data_asset:{row.id}",
            data={"sha256": sha256, "size_bytes": size},
        )
        reply = _asset(row)
        once.keep(session, asked, row.id, reply)
        session.flush()
        # Inside the transaction: no deletion of the same bytes comes between, and what finds no
        # room in a quota leaves no file.
        caller.state.assets.keep(caller.principal.organisation_id, received)
        return reply


def _note(session: Session, caller: CallerOf, what: str, row: EnvironmentRow, asset: str) -> None:
    audit.record(
        session,
        caller,
        action=f"environment.{what}",
        subject=f"environment:{row.id}",
        environment_name=row.name,
        data={"data_asset_id": asset},
    )


def _asset(row: DataAssetRow) -> JsonObject:
    return {
        "id": row.id,
        "name": row.name,
        "media_type": row.media_type,
        "sha256": row.sha256,
        "size_bytes": row.size_bytes,
        "created_at": moment(row.created_at),
    }


def _attachment(row: DataAttachmentRow, asset: DataAssetRow) -> JsonObject:
    return {
        "data_asset_id": asset.id,
        "environment_id": row.environment_id,
        "injection_config": row.injection_config,
        "attached_at": moment(row.created_at),
        "data_asset": _asset(asset),
    }
