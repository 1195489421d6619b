"""Saved policies."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field
from rlcore import EnvironmentIdentity

from rleaas.models.shape import JsonObject, Moment, Shape


class Checkpoint(Shape):
    """A policy as it was at some episode of a training job.

    `metrics` has every figure that is known of it; `card` what made it: family,
    hyper-parameters, seeds, versions of packages. The record of a job has its checkpoints without
    cards.
    """

    other_names: ClassVar = {"id": ("checkpoint_id",)}

    id: str
    job_id: str | None = None
    episode: int | None = None
    timestep: int | None = None
    label: str | None = None
    avg_reward: float | None = None
    success_rate: float | None = None
    algorithm: str | None = None
    environment_name: str | None = None
    environment_version: int | None = None
    contract_digest: str | None = None
    sha256: str | None = None
    size_bytes: int | None = None
    state_sha256: str | None = None
    state_bytes: int | None = None
    composite_verifier_score: float | None = None
    metrics: JsonObject = Field(default_factory=dict[str, object])
    card: JsonObject = Field(default_factory=dict[str, object])
    download_url: str | None = None
    created_at: Moment | None = None

    @property
    def identity(self) -> EnvironmentIdentity | None:
        """The environment it was trained on; None where the server does not say."""
        if self.environment_name is None or self.contract_digest is None:
            return None
        return EnvironmentIdentity(
            self.environment_name, self.environment_version, self.contract_digest
        )
