"""What a key may be given by whoever makes it, and what an organisation's limits are called."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

from rlcore import InvalidRequestError, PermissionDeniedError

Role = Literal["member", "admin"]
ADMIN: Final = "admin"
SCOPES: Final = ("read", "write", ADMIN)
DEFAULT_SCOPES: Final = ("read", "write")

ENVIRONMENTS: Final = "environments"
JOBS: Final = "jobs"
STORAGE: Final = "storage_bytes"
RATE: Final = "requests_per_minute"
JOB_WALL_SECONDS: Final = "job_wall_seconds"
JOB_TIMESTEPS: Final = "job_timesteps"
JOB_PROCESSES: Final = "job_processes"
LIMITS: Final = {
    ENVIRONMENTS: "how many environments may be registered",
    JOBS: "how many jobs may be pending or running",
    STORAGE: "how many bytes of files may be kept",
    RATE: "how many requests a minute may be sent",
    JOB_WALL_SECONDS: "how many seconds a training job may take",
    JOB_TIMESTEPS: "how many steps a training job may take",
    JOB_PROCESSES: "how many processes a training job may have",
}


def scopes_to_give(asked: Sequence[str] | None, own: Iterable[str], role: Role) -> list[str]:
    """Return the scopes of a new key, in their fixed order; by default reading and writing.

    Raises:
        PermissionDeniedError: its maker has not all of them, or its holder is no admin.
    """
    have = set(own)
    wanted = have & set(DEFAULT_SCOPES) if asked is None else set(asked)
    missing = sorted(wanted - have)
    if missing:
        raise PermissionDeniedError(
            f"a key cannot be given the scope {missing[0]!r} by one that has it not",
            code="scope_not_held",
            hint=f"It can be given {', '.join(sorted(have))}",
        )
    if ADMIN in wanted and role != ADMIN:
        raise PermissionDeniedError(
            "a member who is no admin cannot have a key with the scope 'admin'",
            code="member_is_no_admin",
            hint="Make them an admin first",
        )
    return [scope for scope in SCOPES if scope in wanted]


def expiry(
    now: datetime, *, expires_in: float | None, expires_at: datetime | None, latest: datetime | None
) -> datetime | None:
    """Return when a new key ends: as asked, but no later than the key that it is made with.

    Raises:
        InvalidRequestError: that moment has passed, or it was said in both ways.
    """
    if expires_in is not None and expires_at is not None:
        raise InvalidRequestError(
            "expires_in and expires_at are two ways to say one thing", hint="Send one of them"
        )
    asked = expires_at if expires_in is None else now + timedelta(seconds=expires_in)
    if asked is not None and asked <= now:
        raise InvalidRequestError(
            f"a key that expires at {asked.isoformat()} could never be used",
            hint="Give it a moment that is still to come",
        )
    ends = [moment for moment in (asked, latest) if moment is not None]
    return min(ends, default=None)


def tightest(*limits: Mapping[str, object]) -> dict[str, float]:
    """Return for each limit the smallest value that any of them has."""
    merged: dict[str, float] = {}
    for one in limits:
        for name, value in one.items():
            number = float(str(value))
            merged[name] = min(number, merged.get(name, number))
    return merged
