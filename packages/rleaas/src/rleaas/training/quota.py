"""The `compute_quota` object of a training request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from rleaas.training import config_rules as rules

_KEYS = ("max_wall_seconds", "max_timesteps", "max_processes")

QUOTA_SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "max_wall_seconds": {"type": "number", "exclusiveMinimum": 0},
        "max_timesteps": {"type": "integer", "minimum": 1},
        "max_processes": {"type": "integer", "minimum": 1},
    },
    "additionalProperties": False,
}
"""The same rules as JSON Schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeQuota:
    """What a job may use up before it fails with a reason.

    `max_processes` counts the worker itself and every process that it starts.
    """

    max_wall_seconds: float | None = None
    max_timesteps: int | None = None
    max_processes: int | None = None

    def to_config(self) -> dict[str, object]:
        """The object that validates to this again."""
        return {key: value for key, value in asdict(self).items() if value is not None}


def validate_quota(key: str, value: object) -> ComputeQuota:
    """A checked `compute_quota` object.

    Raises:
        ConfigurationError: naming the field, as `compute_quota.max_timesteps`.
    """
    given = rules.mapping(key, value)
    for name in given:
        if name not in _KEYS:
            raise rules.unknown(name, key, _KEYS)
    seconds, steps, processes = (given.get(name) for name in _KEYS)
    return ComputeQuota(
        max_wall_seconds=None
        if seconds is None
        else rules.above_zero(f"{key}.max_wall_seconds", seconds),
        max_timesteps=None if steps is None else rules.positive_int(f"{key}.max_timesteps", steps),
        max_processes=None
        if processes is None
        else rules.positive_int(f"{key}.max_processes", processes),
    )
