"""The removal of checkpoints that a job has too many of."""

from collections.abc import Mapping
from typing import Final, cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from rleaas.server.rules.agent_checks import checkpoint_reference
from rleaas.server.rules.checkpoint_retention import Saved, surplus
from rleaas.server.rules.json_values import number
from rleaas.server.store import governance, jobs
from rleaas.server.store.tables import (
    AgentRow,
    AgentVersionRow,
    CheckpointRow,
    ExportRow,
    JobRow,
    KpiRow,
)
from rleaas.training.kept_checkpoints import KeptCheckpoints, settle_kept

SETTING: Final = "checkpoint_retention"


def setting_of(session: Session, job: JobRow) -> KeptCheckpoints:
    """What holds for a job: its own setting, else the environment's, else the organisation's."""
    config = cast("Mapping[str, object]", job.request.get("config") or {})
    place = governance.effective(session, job.organisation_id, job.version.environment_id)
    return settle_kept(config.get(SETTING), place.get(SETTING))


def prune(session: Session, job: JobRow) -> set[str]:
    """Remove what the job has too many of; returns the digests that its rows named before.

    Discard those files after the transaction: others may name them too.
    """
    rows = session.scalars(
        select(CheckpointRow)
        .where(CheckpointRow.job_id == job.id)
        .order_by(CheckpointRow.episode, CheckpointRow.created_at, CheckpointRow.id)
    ).all()
    kept = setting_of(session, job)
    saved = [Saved(row.id, _score(row, kept.metric), bool(row.state_sha256)) for row in rows]
    found = surplus(saved, kept)
    if not found.checkpoints and not found.states:
        return set()  # the usual case: nobody has to be asked who refers to what
    found = surplus(saved, kept, _referred(session, job))
    digests: set[str] = set()
    for row in rows:
        if row.id in found.checkpoints:
            digests |= {row.sha256} | ({row.state_sha256} if row.state_sha256 else set())
            digests |= set(
                session.scalars(select(ExportRow.sha256).where(ExportRow.checkpoint_id == row.id))
            )
            session.delete(row)
        elif row.id in found.states and row.state_sha256 is not None:
            digests.add(row.state_sha256)
            row.state_sha256 = row.state_bytes = None
    if found.checkpoints:
        gone = sorted(found.checkpoints)
        jobs.tell(session, job, "checkpoints_removed", {"checkpoint_ids": gone})
    session.flush()
    return digests


def _score(row: CheckpointRow, metric: str) -> float | None:
    if metric in (row.metrics or {}):
        return number((row.metrics or {})[metric])
    return number(getattr(row, metric)) if metric in ("avg_reward", "success_rate") else None


def _referred(session: Session, job: JobRow) -> set[str]:
    """Every checkpoint that an agent, an evaluation, a comparison or another training names."""
    found: set[str] = set()
    models = list(session.scalars(select(AgentRow.model_ref)))
    models += [
        text
        for config in session.scalars(select(AgentVersionRow.config))
        if isinstance(text := config.get("model_ref"), str)
    ]
    found.update(one for text in models if (one := checkpoint_reference(text)))
    for field in ("checkpoint_id", "resume_from_checkpoint"):
        named = JobRow.request[field].as_string()
        found.update(
            one
            for one in session.scalars(
                select(named).where(named.is_not(None), JobRow.id != job.id).distinct()
            )
            if one
        )
    found.update(one for one in session.scalars(select(KpiRow.checkpoint_id)) if one)
    if f"ckpt_{job.id}_final" in found and job.checkpoints:
        found.add(job.checkpoints[-1].id)
    return found
