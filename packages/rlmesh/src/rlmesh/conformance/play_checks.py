"""Checks of a play: what reset and step are called with, and what they return."""

from __future__ import annotations

from rlmesh.conformance.evidence import Evidence, need
from rlmesh.conformance.recording import Recording
from rlmesh.conformance.verdicts import Finding, failed, noted, passed, skipped


def plays(evidence: Evidence) -> Finding:
    """Reset and step raise nothing for seeds and samples of the action space."""
    for recording in _recordings(evidence):
        if recording.raised is not None:
            fault = recording.raised
            fix = "Every sample of the action space is legal: accept it, or narrow the space."
            return failed(fault.text, fix, fault.place)
    return passed(f"{_extent(evidence)} of samples of the action space raised nothing")


def answers(evidence: Evidence) -> Finding:
    """Reset returns a pair, step five values."""
    fix = "Return (observation, info) from reset and five values from step, as tuples."
    return _judged(evidence, "answers", fix, "reset returned pairs, step five values")


def observations(evidence: Evidence) -> Finding:
    """Every observation is in the declared space, of its exact element type and shape."""
    fix = "Cast or clip what is returned, or declare the space that it is in."
    good = f"all {_moments(evidence)} are in the declared space, with its types and shapes"
    return _judged(evidence, "observations", fix, good)


def observation_kept(evidence: Evidence) -> Finding:
    """A later step does not change an observation that was returned before."""
    fix = "Return a copy of the array: a caller that stores observations would store the last one."
    return _judged(evidence, "observation_kept", fix, "no step changed an earlier observation")


def reward(evidence: Evidence) -> Finding:
    """The reward is a finite number."""
    fix = "Return a finite float; mark a failed episode by a flag or in the info."
    return _judged(evidence, "reward", fix, "all rewards are finite numbers")


def flags(evidence: Evidence) -> Finding:
    """Terminated and truncated are bools."""
    fix = "Return bool(...): what is merely truthy is judged differently by different trainers."
    return _judged(evidence, "flags", fix, "terminated and truncated are bools")


def info(evidence: Evidence) -> Finding:
    """The info is a dict that can travel."""
    finding = _judged(
        evidence,
        "info",
        "Return a dict with str keys, empty if need be.",
        "infos travel as they are",
    )
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


def _judged(evidence: Evidence, check: str, fix: str, good: str) -> Finding:
    for recording in _recordings(evidence):
        fault = recording.faults.get(check)
        if fault is not None:
            return failed(fault.text, fix, fault.place)
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
