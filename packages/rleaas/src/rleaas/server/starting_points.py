"""What a training starts from, and whether a checkpoint fits where it is to act."""

from typing import cast

from rlcore import ConfigurationError
from sqlalchemy.orm import Session

from rleaas.server.routes.bodies import JsonObject
from rleaas.server.store import agents, jobs
from rleaas.server.store.tables import AgentRow, CheckpointRow, VersionRow
from rleaas.training.config import TrainingConfig

Spaces = tuple[JsonObject, JsonObject]


def starting_point(
    session: Session, named: str | None, agent: AgentRow | None
) -> tuple[JsonObject, CheckpointRow | None]:
    """What the training starts from, as the record says it, and the checkpoint if it is one.

    Args:
        session: of the database.
        named: the checkpoint that the request itself names; it holds before the agent's.
        agent: whose training it is.

    Raises:
        CheckpointNotFound: there is none of this name.
        ConflictError: the agent's model is a checkpoint that cannot be used.
    """
    if named:
        checkpoint = jobs.find_checkpoint(session, named)
        return {"from": "checkpoint", "checkpoint_id": checkpoint.id}, checkpoint
    if agent is None:
        return {"from": "nothing"}, None
    latest = agents.latest_checkpoint(session, agent)
    if latest is None:
        return {"from": "nothing", "agent": agent.id, "why": "the agent has no checkpoint"}, None
    return {"from": "agent", "agent": agent.id, "checkpoint_id": latest.id}, latest


def require_resumable(
    checkpoint: CheckpointRow, checked: TrainingConfig, version: VersionRow
) -> None:
    """Refuse a checkpoint that a training cannot go on from.

    Raises:
        ConfigurationError: it is of another algorithm, of other spaces or of another network.
    """
    trained_by = checkpoint.job.request.get("algorithm")
    if trained_by != checked.algorithm:
        raise ConfigurationError(
            f"checkpoint {checkpoint.id!r} was trained by {trained_by}, not {checked.algorithm}",
            code="checkpoint_of_other_algorithm",
            hint=f"Train with {trained_by}, or start from another checkpoint",
        )
    require_same_spaces(checkpoint, version)
    asked, saved = checked.hyperparameters.get("net_arch"), _net_arch(checkpoint)
    if asked is not None and saved is not None and list(cast("tuple[int, ...]", asked)) != saved:
        raise ConfigurationError(
            f"net_arch {list(cast('tuple[int, ...]', asked))} is not the {saved} of checkpoint "
            f"{checkpoint.id!r}",
            code="checkpoint_incompatible",
            hint="Leave net_arch out to go on with the checkpoint's network",
        )


def require_same_spaces(checkpoint: CheckpointRow, version: VersionRow) -> None:
    """Refuse a checkpoint whose policy cannot act in an environment, as far as that is known.

    Raises:
        ConfigurationError: it was trained on other observations or actions.
    """
    before, now = spaces_of(checkpoint.job.version), spaces_of(version)
    if before is None or now is None:
        return
    for what, saved, given in zip(("observations", "actions"), before, now, strict=True):
        if saved != given:
            trained_on = checkpoint.job.version
            raise ConfigurationError(
                f"checkpoint {checkpoint.id!r} has other {what} than environment "
                f"{version.environment.name!r}: {_told(saved)}, not {_told(given)}",
                code="checkpoint_incompatible",
                hint=f"It was trained on {trained_on.environment.name}@{trained_on.version}",
            )


def spaces_of(version: VersionRow) -> Spaces | None:
    """The spaces of observations and actions; None while the contract is not known."""
    contract = version.contract
    if contract is None:
        return None
    spaces = contract.get("observation_space"), contract.get("action_space")
    return cast("Spaces", spaces)


def _net_arch(checkpoint: CheckpointRow) -> list[int] | None:
    """The widths of the layers that the checkpoint's file says; None: it says none."""
    told = (checkpoint.manifest or {}).get("hyperparameters")
    widths = cast("JsonObject", told).get("net_arch") if isinstance(told, dict) else None
    return cast("list[int]", widths) if isinstance(widths, list) else None


def _told(space: JsonObject) -> str:
    details = space.get("details")
    size = cast("JsonObject", details).get("n") if isinstance(details, dict) else None
    return f"{space.get('kind')} of {space.get('shape') if size is None else size}"
