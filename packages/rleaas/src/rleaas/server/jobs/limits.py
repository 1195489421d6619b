"""What a job's worker may use, as its request and its server say."""

from collections.abc import Mapping
from typing import Final, cast

from rleaas.server.jobs.executor import Limits
from rleaas.server.rules.json_values import integer, number

# The trainer ends in order when its time is over; a worker that does not is ended later.
_MORE_SECONDS: Final = 60.0


def limits_of(request: Mapping[str, object], *, memory_bytes: int | None = None) -> Limits:
    """The limits of a job.

    Args:
        request: what was asked for; its config may have a `compute_quota`.
        memory_bytes: what the server lets each worker use.
    """
    quota = _object(_object(request.get("config")).get("compute_quota"))
    seconds = number(quota.get("max_wall_seconds"))
    return Limits(
        memory_bytes=memory_bytes,
        wall_seconds=None if seconds is None else seconds + _MORE_SECONDS,
        stop_seconds=_MORE_SECONDS,
        processes=integer(quota.get("max_processes")),
    )


def _object(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}
