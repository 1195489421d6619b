"""Checks of a play: what reset and step are called with, and what they return."""

from __future__ import annotations

from typing import Final

from rlcore import EnvironmentException, Error, TransportError

from rlmesh.conformance.evidence import Evidence, need
from rlmesh.conformance.recording import Recording
from rlmesh.conformance.verdicts import Finding, failed, noted, passed, skipped
from rlmesh.protocol.faults import FaultCode

_OF_STEPS: Final = {"action_kept", "flags", "observation_kept", "reward"}
# What servers say of what came back from an environment.
_REFUSED: Final = {
    "step returned a reward that is no finite number": "reward",
    " must be a bool": "flags",
    "info must be a dict": "info",
    "step returned ": "answers",
    "InvalidObservationError": "observations",
}


def plays(evidence: Evidence) -> Finding:
    """Reset and step raise nothing for seeds and samples of the action space."""
    for recording in _recordings(evidence):
        if recording.raised is not None:
            fault = recording.raised
            return failed(fault.text, _remedy(recording), fault.place)
    return passed(f"{_extent(evidence)} of samples of the action space raised nothing")


def answers(evidence: Evidence) -> Finding:
    """Reset returns a pair, step five values."""
    fix = "Return (observation, info) from reset and five values from step, as tuples."
    finding = _judged(evidence, "answers", fix, "reset returned pairs, step five values")
    return _over_wire(evidence, finding, "the server takes older forms as well")


def observations(evidence: Evidence) -> Finding:
    """Every observation is in the declared space, of its exact element type and shape."""
    fix = "Cast or clip what is returned, or declare the space that it is in."
    good = f"all {_moments(evidence)} are in the declared space, with its types and shapes"
    if evidence.subject.address is not None:
        good = (
            f"all {_moments(evidence)} are in the declared space; the types that the environment"
            " gives are not visible over the wire"
        )
    return _judged(evidence, "observations", fix, good)


def observation_kept(evidence: Evidence) -> Finding:
    """A later step does not change an observation that was returned before."""
    fix = "Return a copy of the array: a caller that stores observations would store the last one."
    finding = _judged(evidence, "observation_kept", fix, "no step changed an earlier observation")
    return _over_wire(evidence, finding, "a client has arrays of its own")


def action_kept(evidence: Evidence) -> Finding:
    """A step does not change the action that it was given."""
    fix = "Work on a copy of it: a caller that stores actions would store something else."
    return _judged(evidence, "action_kept", fix, "no step changed its action")


def reward(evidence: Evidence) -> Finding:
    """The reward is a finite number."""
    fix = "Return a finite float; mark a failed episode by a flag or in the info."
    return _judged(evidence, "reward", fix, "all rewards are finite numbers")


def flags(evidence: Evidence) -> Finding:
    """Terminated and truncated are bools."""
    fix = "Return bool(...): what is merely truthy is judged differently by different trainers."
    finding = _judged(evidence, "flags", fix, "terminated and truncated are bools")
    return _over_wire(evidence, finding, "the server sends bools")


def info(evidence: Evidence) -> Finding:
    """The info is a dict that can travel."""
    finding = _judged(
        evidence,
        "info",
        "Return a dict with str keys, empty if need be.",
        "infos travel as they are",
    )
    if evidence.subject.address is not None:
        return _over_wire(evidence, finding, "the server has simplified what cannot travel")
    recordings = _recordings(evidence)
    simplified = sorted(set[str]().union(*(recording.simplified for recording in recordings)))
    if finding.verdict != "passed" or not simplified:
        return finding
    return noted(
        f"simplified on the wire: {', '.join(simplified)}",
        "Keep numbers, strings, lists, dicts and arrays in infos.",
    )


def episode_end(evidence: Evidence) -> Finding:
    """Episodes end within the steps that were played."""
    recordings = _recordings(evidence)
    terminated = sum(recording.ends["terminated"] for recording in recordings)
    truncated = sum(recording.ends["truncated"] for recording in recordings)
    if not terminated + truncated:
        return noted(
            f"no episode ended within {evidence.steps} steps",
            "Nothing is wrong with that; more --steps show an end, if there is one.",
        )
    longest = max(recording.longest for recording in recordings)
    return passed(
        f"{terminated + truncated} episodes ended ({terminated} terminated, {truncated} truncated),"
        f" the longest after {longest} steps"
    )


def latency(evidence: Evidence) -> Finding:
    """How long a step takes, over the wire."""
    seconds = sorted(second for one in _recordings(evidence) for second in one.step_seconds)
    if not seconds:
        return skipped("no step was taken")
    middle, late = (seconds[int(part * (len(seconds) - 1))] * 1000 for part in (0.5, 0.99))
    return passed(f"p50 {middle:.3f} ms, p99 {late:.3f} ms over {len(seconds)} steps")


def _over_wire(evidence: Evidence, finding: Finding, why: str) -> Finding:
    """Return a finding, unless it tells of what a client cannot see."""
    if evidence.subject.address is not None and finding.verdict == "passed":
        return skipped(f"not visible over the wire: {why}")
    return finding


def _remedy(recording: Recording) -> str:
    """Return what to do about a play that ended early."""
    judge, cause = _judge(recording), recording.cause
    if judge is not None:
        return f"Its server refused what came back; see {judge}."
    if isinstance(cause, Error) and cause.code == FaultCode.CRASHED.name.lower():
        return "Its process ended: what its server wrote to standard error may tell more."
    if isinstance(cause, TransportError):
        return "Its server has gone, or cannot be reached any more: see what it wrote."
    return (
        "Mend what raised. Every sample of the action space is legal, where that is the matter:"
        " accept it, or narrow the space."
    )


def _judge(recording: Recording) -> str | None:
    """Return the check that is about what a server refused, where it refused something."""
    if not isinstance(recording.cause, EnvironmentException):
        return None
    found = (check for text, check in _REFUSED.items() if text in recording.cause.message)
    return next(found, None)


def _judged(evidence: Evidence, check: str, fix: str, good: str) -> Finding:
    for recording in _recordings(evidence):
        fault = recording.faults.get(check)
        if fault is not None:
            return failed(fault.text, fix, fault.place)
        if recording.raised is not None and _judge(recording) == check:
            return failed(recording.raised.text, fix, recording.raised.place)
    if check in _OF_STEPS and not any(recording.steps for recording in _recordings(evidence)):
        return skipped("no step was taken; see plays")
    if not _moments_of(evidence) and check != "answers":
        return skipped("nothing came back that could be judged; see plays and answers")
    return passed(good)


def _recordings(evidence: Evidence) -> list[Recording]:
    recordings = list(evidence.first.recordings.values())
    need(recordings or None)
    return recordings


def _moments_of(evidence: Evidence) -> int:
    return sum(len(recording.moments) for recording in _recordings(evidence))


def _moments(evidence: Evidence) -> str:
    return f"{_moments_of(evidence)} observations"


def _extent(evidence: Evidence) -> str:
    steps = sum(recording.steps for recording in _recordings(evidence))
    return f"{steps} steps"
