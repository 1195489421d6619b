"""`rleaas checkpoint …`: policies as they were at some episode."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rleaas.cli.command import Asked, command
from rleaas.cli.console import Column, columns
from rleaas.cli.nouns import noun
from rleaas.cli.references import CheckpointRef, JobRef

app = noun("checkpoint")


_SHOWN = (
    *columns("id"),
    Column("job", "job_id"),
    *columns("label", "episode"),
    Column("steps", "timestep"),
    Column("mean return", "avg_reward"),
    *columns("success rate", "algorithm"),
    Column("environment", lambda one: f"{one.environment_name}@{one.environment_version}"),
    Column("digest", "contract_digest"),
    Column("bytes", "size_bytes"),
    Column("SHA-256", "sha256"),
    Column("bytes of state", "state_bytes"),
    Column("created", "created_at"),
)
_CARD = (
    Column("figures", "metrics"),
    Column("family", lambda one: one.card.get("family")),
    Column("seeds", lambda one: one.card.get("seeds")),
    Column("hyper-parameters", lambda one: one.card.get("hyperparameters")),
    Column("network", lambda one: one.card.get("network")),
    Column("packages", lambda one: one.card.get("packages")),
)


@command(app, "get", "get ckpt_1")
def get(asked: Asked, checkpoint: CheckpointRef) -> None:
    """Show one checkpoint; `rleaas checkpoint list JOB_ID` lists those of a job."""
    asked.facts(asked.client.Checkpoint.get(checkpoint), _SHOWN)


@command(app, "show", "show ckpt_1")
def show(asked: Asked, checkpoint: CheckpointRef) -> None:
    """Show one checkpoint with its card: figures, seeds, hyper-parameters, package versions."""
    asked.facts(asked.client.Checkpoint.get(checkpoint), (*_SHOWN, *_CARD))


@command(app, "list", "list job_1")
def list_checkpoints(asked: Asked, job_id: JobRef) -> None:
    """List the checkpoints of a job, in the order of training."""
    asked.rows(
        asked.client.TrainingJob.get(job_id).list_checkpoints(),
        (
            *columns("id", "label", "episode"),
            Column("steps", "timestep"),
            Column("mean return", "avg_reward"),
            *columns("success rate"),
            Column("bytes", "size_bytes"),
            Column("resumes exactly", lambda one: one.state_sha256 is not None),
            Column("created", "created_at"),
        ),
        empty="No checkpoints yet.",
    )


@command(app, "best", "best job_1", "best job_1 --metric success_rate")
def best(
    asked: Asked,
    job_id: JobRef,
    metric: Annotated[
        str, typer.Option(metavar="NAME", help="Which figure decides.")
    ] = "avg_reward",
    lowest: Annotated[
        bool, typer.Option("--lowest", help="The lowest is the best, as of a loss.")
    ] = False,
) -> None:
    """Show the best checkpoint of a job; those without the figure do not count."""
    job = asked.client.TrainingJob.get(job_id)
    asked.facts(job.get_best_checkpoint(metric, lowest=lowest), (*_SHOWN, _CARD[0]))


@command(app, "download", "download ckpt_1 policy.zip")
def download(
    asked: Asked,
    checkpoint: CheckpointRef,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Where to save it.")],
) -> None:
    """Save a checkpoint's file, which appears only if its digest is right."""
    saved = asked.client.Checkpoint.get(checkpoint).download(path)
    asked.done({"saved": str(saved)}, f"saved {saved}")
