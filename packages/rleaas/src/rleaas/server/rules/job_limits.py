"""What an organisation allows a single training job to use up."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Final

from rlcore import QuotaExceededError

from rleaas.server.rules.grants import JOB_PROCESSES, JOB_TIMESTEPS, JOB_WALL_SECONDS
from rleaas.training.quota import ComputeQuota

_LIMIT_OF: Final = {
    "max_wall_seconds": JOB_WALL_SECONDS,
    "max_timesteps": JOB_TIMESTEPS,
    "max_processes": JOB_PROCESSES,
}


def within_limits(asked: ComputeQuota | None, limits: Mapping[str, float]) -> ComputeQuota | None:
    """The quota that holds for a job: what was asked, and the limit where nothing was.

    Raises:
        QuotaExceededError: more was asked than the limit.
    """
    held: dict[str, float | None] = {}
    for one in fields(ComputeQuota):
        limit = limits.get(_LIMIT_OF[one.name])
        wanted: float | None = None if asked is None else getattr(asked, one.name)
        if limit is not None and wanted is not None and wanted > limit:
            raise QuotaExceededError(
                f"compute_quota.{one.name} {wanted:g} is more than the quota "
                f"{_LIMIT_OF[one.name]!r}, {limit:g}",
                hint="Ask for less, or ask an admin for more",
            )
        held[one.name] = wanted if wanted is not None or limit is None else limit
    if all(value is None for value in held.values()):
        return asked
    seconds, steps, processes = held.values()
    return ComputeQuota(
        max_wall_seconds=seconds,
        max_timesteps=None if steps is None else int(steps),
        max_processes=None if processes is None else int(processes),
    )
