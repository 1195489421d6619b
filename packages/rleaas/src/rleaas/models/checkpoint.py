"""Saved policies."""

from __future__ import annotations

from typing import ClassVar

from rlcore import EnvironmentIdentity

from rleaas.models.shape import Moment, Shape


class Checkpoint(Shape):
    """A policy as it was at some episode of a training job."""

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
