"""`rleaas checkpoint …`: policies as they were at some episode."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rleaas.cli.command import Asked, command
from rleaas.cli.console import Column, columns
from rleaas.cli.nouns import noun
from rleaas.cli.references import CheckpointRef

app = noun("checkpoint")


@command(app, "get", "get ckpt_1")
def get(asked: Asked, checkpoint: CheckpointRef) -> None:
    """Show one checkpoint; `rleaas job checkpoints JOB_ID` lists those of a job."""
    asked.facts(
        asked.client.Checkpoint.get(checkpoint),
        (
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
            Column("created", "created_at"),
        ),
    )


@command(app, "download", "download ckpt_1 policy.zip")
def download(
    asked: Asked,
    checkpoint: CheckpointRef,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Where to save it.")],
) -> None:
    """Save a checkpoint's file, which appears only if its digest is right."""
    saved = asked.client.Checkpoint.get(checkpoint).download(path)
    asked.done({"saved": str(saved)}, f"saved {saved}")
