"""What webhooks ask for and are told: names of events, signatures, patience."""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Final

from rlcore import InvalidRequestError, Secret

# The published names, and the kinds of events that each of them stands for.
PUBLISHED: Final[Mapping[str, tuple[str, ...]]] = {
    "metrics_update": ("metric",),
    "checkpoint_saved": ("checkpoint_saved",),
    "job_complete": ("completed", "failed", "cancelled"),
    "reward_collapse_alert": ("reward_collapse_alert",),
    "tier_advance": ("tier_advance",),
}
TEST: Final = "webhook.test"
SIGNATURE: Final = "x-rleaas-signature"
TIMESTAMP: Final = "x-rleaas-timestamp"
DELIVERY: Final = "x-rleaas-delivery"
EVENT: Final = "x-rleaas-event"
MOST_ATTEMPTS: Final = 10
_LONGEST_DELAY: Final = 3600.0
_MOST_NAMES: Final = 50


def kinds_of(names: Sequence[str]) -> tuple[str, ...] | None:
    """The kinds of events that these names stand for; None: all of them."""
    if not names:
        return None
    return tuple(dict.fromkeys(kind for name in names for kind in PUBLISHED.get(name, (name,))))


def name_of(kind: str) -> str:
    """The published name of a kind of event, or the kind where it has none."""
    return next((name for name, kinds in PUBLISHED.items() if kind in kinds), kind)


def check_names(names: Sequence[str]) -> None:
    """Refuse names that no event could have.

    Raises:
        InvalidRequestError: one is empty, longer than any, or there are too many.
    """
    bad = [name for name in names if not name.strip() or len(name) > 100 or "," in name]
    if bad or len(names) > _MOST_NAMES:
        what = f"{bad[0][:100]!r} is no event" if bad else f"more than {_MOST_NAMES} events"
        raise InvalidRequestError(
            what,
            status_code=422,
            code="invalid_webhook",
            hint=f"Known are {', '.join(PUBLISHED)} and kinds of events; leave it out for all",
        )


def signature(secret: Secret, timestamp: str, body: bytes) -> str:
    """The signature of a delivery: the HMAC-SHA256 of its time, a dot and its body."""
    told = timestamp.encode() + b"." + body
    return "v1=" + hmac.new(secret.reveal().encode(), told, hashlib.sha256).hexdigest()


def delay(attempts: int, first: float) -> float:
    """The seconds before the next attempt, after so many."""
    return min(_LONGEST_DELAY, first * 2.0 ** max(0, attempts - 1))
