"""What becomes of a job whose worker has ended before the job was done."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_LONGEST_DELAY: Final = 60.0
_BY_ITSELF: Final = "look for os._exit, or a library that ends the process, in what the job runs"


@dataclass(frozen=True, slots=True)
class StartAgain:
    """The job is started again after `delay` seconds; `why` is for its log."""

    delay: float
    why: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The job has failed; `error` is the whole story, `reason` its code."""

    error: str
    reason: str


def after_death(
    how: str,
    said: Sequence[str],
    *,
    exceeded: str | None,
    restarts: int,
    most_restarts: int,
    first_delay: float,
    earlier: Sequence[str] = (),
    by_itself: bool = False,
) -> StartAgain | GiveUp:
    """Decide about a job whose worker has died.

    Args:
        how: how the worker ended, in words that go on after "its worker".
        said: the last lines of its output.
        exceeded: the limit that it was ended for: another attempt would come to the same end.
        restarts: how often the job was started again so far.
        most_restarts: how often it may be.
        first_delay: how many seconds to wait before the first; each waits twice as long.
        earlier: how the workers before it ended.
        by_itself: whether its process has ended itself, and nobody has killed it.
    """
    last_words = "; its last output:\n" + "\n".join(said) if said else ""
    if exceeded is not None:
        return GiveUp(f"its worker {how}{last_words}", "quota_exceeded")
    if restarts >= most_restarts:
        again = f" (it was started again {restarts} times before" if restarts else ""
        if again:
            ends = ", ".join(one for one in dict.fromkeys(earlier) if one != how)
            again += f"; those before {ends})" if ends else ", and each time so)"
        why = f"; {_BY_ITSELF}" if by_itself else ""
        return GiveUp(f"its worker {how}{again}{why}{last_words}", "worker_died")
    delay = min(_LONGEST_DELAY, first_delay * 2.0**restarts)
    what = f"restart {restarts + 1} of {most_restarts} in {delay:.1f} s"
    return StartAgain(delay, f"its worker {how}; {what}")
