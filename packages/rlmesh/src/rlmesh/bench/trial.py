"""Tries an environment out before it is measured, in a process that it may end or hang."""

from __future__ import annotations

from dataclasses import replace

from rlcore import CallTimeout, ConfigurationError, Error

from rlmesh.bench.cells import Subject
from rlmesh.bench.processes import ClientProcess

# For making an environment three times and a few dozen steps.
TRIAL_SECONDS = 60.0
AT_AN_ADDRESS = "it is only known by its address"


class CannotBeMeasured(ConfigurationError):
    """An environment cannot be made or stepped at all, so that there is nothing to measure."""

    default_code = "cannot_be_measured"


def tried(subject: Subject, *, seconds: float = TRIAL_SECONDS) -> tuple[Subject, str | None]:
    """Return a subject with its number of lanes, and why it cannot be checked, if it cannot.

    Raises:
        CannotBeMeasured: it cannot be made or stepped, ends its process, or takes too long.
    """
    if subject.source is None:
        return subject, AT_AN_ADDRESS
    process = ClientProcess(settings=False, name="trial")
    try:
        process.loaded()
        process.tell({"do": "try", "source": subject.source})
        answer = process.answer(seconds)
    except CallTimeout as error:
        raise CannotBeMeasured(
            f"{subject.name} cannot be measured: trying it took more than {seconds:g} s",
            hint="Does it hang when it is made, reset or stepped?",
        ) from error
    except Error as error:
        raise CannotBeMeasured(f"{subject.name} cannot be measured: {error.message}") from error
    finally:
        process.end()
    return replace(subject, lanes=int(answer["lanes"])), answer["unchecked"]
