"""The routes of one agent, as both the collection and the handle use them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import get_args
from urllib.parse import parse_qsl, urlsplit

from rlcore import CheckpointCorrupted, Deadline, ServerFailure, UnexpectedReply

from rleaas._flow import request as build
from rleaas._flow.context import Context
from rleaas._flow.decode import read, read_list
from rleaas._flow.retry import ask, fetch
from rleaas._flow.wire import Flow, Reply, Request, Save, work
from rleaas.models import (
    Agent,
    AgentBinding,
    AgentExport,
    AgentExportFormat,
    AgentValidation,
    AgentVersion,
    DryRun,
    Shape,
)
from rleaas.resources.checkpoints import CheckpointRef, checkpoint_reference
from rleaas.resources.environment_routes import EnvironmentRef, reference
from rleaas.resources.references import plain, require_one_of

KIND = "agent"
_ENDINGS = {"safetensors": "safetensors", "pytorch": "pt", "onnx": "onnx"}
_EXPORT_SECONDS = 600.0
FORMATS: tuple[str, ...] = get_args(AgentExportFormat)


def get(agent_id: str, context: Context) -> Flow[Agent]:
    """Return the agent's record."""
    request = build.get(path(agent_id), kind=KIND, ref=agent_id)
    reply = yield from ask(request, context)
    return read(Agent, request, reply)


def configure(agent_id: str, config: Mapping[str, object], context: Context) -> Flow[Agent]:
    """Change the fields that are given."""
    request = Request(
        method="PUT",
        path=f"{path(agent_id)}/configure",
        json=plain(config),
        kind=KIND,
        ref=agent_id,
    )
    reply = yield from ask(request, context)
    return read(Agent, request, reply)


def delete(agent_id: str, context: Context) -> Flow[Shape]:
    """Delete it."""
    request = Request(method="DELETE", path=path(agent_id), kind=KIND, ref=agent_id)
    reply = yield from ask(request, context)
    return read(Shape, request, reply)


def versions(agent_id: str, context: Context) -> Flow[list[AgentVersion]]:
    """Return what it was configured as."""
    request = build.get(f"{path(agent_id)}/versions", kind=KIND, ref=agent_id)
    reply = yield from ask(request, context)
    found, _ = read_list(AgentVersion, request, reply, "versions")
    return found


def roll_back(agent_id: str, version: str, context: Context) -> Flow[Agent]:
    """Configure it as it was."""
    request = _post(agent_id, "rollback", {"version": version}, context)
    reply = yield from ask(request, context)
    return read(Agent, request, reply)


def validate(agent_id: str, context: Context) -> Flow[AgentValidation]:
    """Check its configuration."""
    request = build.post(
        f"{path(agent_id)}/validate", key=context.new_key(), kind=KIND, ref=agent_id
    )
    reply = yield from ask(request, context)
    return read(AgentValidation, request, reply)


def dry_run(
    agent_id: str, environment: EnvironmentRef, episodes: int, context: Context
) -> Flow[DryRun]:
    """Let it play some episodes."""
    body = {"environment_id": reference(environment), "episodes": episodes}
    request = _post(agent_id, "dry-run", body, context)
    reply = yield from ask(request, context)
    return read(DryRun, request, reply)


def dry_runs(agent_id: str, context: Context) -> Flow[list[DryRun]]:
    """Return its dry runs."""
    request = build.get(f"{path(agent_id)}/dry-runs", kind=KIND, ref=agent_id)
    reply = yield from ask(request, context)
    found, _ = read_list(DryRun, request, reply, "dry_runs")
    return found


def deploy(
    agent_id: str, environment: EnvironmentRef, label: str | None, context: Context
) -> Flow[AgentBinding]:
    """Bind it to an environment."""
    body: dict[str, object] = {"environment_id": reference(environment)}
    if label is not None:
        body["label"] = label
    request = _post(agent_id, "deploy", body, context)
    reply = yield from ask(request, context)
    return read(AgentBinding, request, reply)


def deployments(agent_id: str, context: Context) -> Flow[list[AgentBinding]]:
    """Return what it was bound to."""
    request = build.get(f"{path(agent_id)}/deployments", kind=KIND, ref=agent_id)
    reply = yield from ask(request, context)
    found, _ = read_list(AgentBinding, request, reply, "deployments")
    return found


def export(
    agent_id: str | None,
    checkpoint: CheckpointRef,
    form: str,
    *,
    metadata: bool,
    audit_hash: bool,
    download_to: str | Path | None,
    context: Context,
) -> Flow[AgentExport]:
    """Give out a checkpoint, and fetch its file where that is asked for."""
    checkpoint_id = checkpoint_reference(checkpoint)
    body = {
        "checkpoint_id": checkpoint_id,
        "format": require_one_of(form, FORMATS, "an export format"),
        "include_metadata": metadata,
        # Without it a file that is fetched could not be checked.
        "include_audit_hash": audit_hash or download_to is not None,
    }
    place = "/api/agents/export" if agent_id is None else f"{path(agent_id)}/export"
    request = build.post(place, body, key=context.new_key(), kind="checkpoint", ref=checkpoint_id)
    reply = yield from _patiently(request, context)
    made = read(AgentExport, request, reply)
    if download_to is None:
        return made
    wanted = Path(download_to)
    is_directory = yield from work(wanted.is_dir)
    target = (
        wanted / f"{checkpoint_id}-{form}.{_ENDINGS.get(form, 'zip')}" if is_directory else wanted
    )
    yield from _download(made, checkpoint_id, target, context)
    return made.model_copy(update={"downloaded_to": str(target)})


def _patiently(request: Request, context: Context) -> Flow[Reply]:
    """Ask again while the export is being made, which may take minutes."""
    deadline = Deadline.after(_EXPORT_SECONDS)
    while True:
        try:
            return (yield from ask(request, context))
        except ServerFailure as error:
            if error.code != "export_in_progress" or deadline.expired():
                raise


def path(agent_id: str) -> str:
    """Return the agent's path."""
    return build.path("/api/agents/{}", agent_id, what="agent id")


def _download(made: AgentExport, checkpoint_id: str, target: Path, context: Context) -> Flow[None]:
    place = urlsplit(made.download_url or "")
    if made.sha256 is None or place.scheme or place.netloc or not place.path.startswith("/"):
        raise UnexpectedReply(
            f"the export of checkpoint {checkpoint_id!r} says {made.download_url!r} and SHA-256 "
            f"{made.sha256!r}, which cannot be fetched and verified",
            hint="Use a server that serves its exports itself, with their digests.",
        )
    request = Request(
        method="GET",
        path=place.path,
        params=tuple(parse_qsl(place.query, keep_blank_values=True)),
        kind="checkpoint",
        ref=checkpoint_id,
    )
    saved = yield from fetch(Save(request, target, made.sha256), context)
    if saved.sha256 != made.sha256:
        raise CheckpointCorrupted(
            checkpoint_id,
            made.sha256,
            saved.sha256,
            hint="Nothing was kept. Export it again.",
            request_id=saved.reply.request_id,
        )


def _post(agent_id: str, action: str, body: object, context: Context) -> Request:
    return build.post(
        f"{path(agent_id)}/{action}", body, key=context.new_key(), kind=KIND, ref=agent_id
    )
