"""Checks of several lanes: what happens at ends, and which lane has which seed."""

from __future__ import annotations

from rlmesh.conformance.evidence import Evidence, need
from rlmesh.conformance.lanes import Columns, End, Lanes
from rlmesh.conformance.stage import Raised
from rlmesh.conformance.verdicts import Finding, Place, failed, noted, passed, skipped
from rlmesh.specs import AutoresetMode

GYMNASIUM = "Gymnasium defines it: https://farama.org/Vector-Autoreset-Mode"
LANE_SEEDS = "reset(seed=s) seeds lane i with s + i; reset(seed=[…]) gives each lane its own."


def autoreset(evidence: Evidence) -> Finding:
    """A lane that ends is reset as the declared mode says, and in no other way."""
    face = need(evidence.first.face)
    if face.mode is None:
        return failed(
            f'metadata["autoreset_mode"] is {face.declared!r}, which is no autoreset mode',
            "Declare NEXT_STEP, SAME_STEP or DISABLED.",
        )
    seen = _lanes(evidence)
    if not seen.ends:
        return skipped(seen.raised or f"no lane's episode ended within {evidence.steps} steps")
    for end in seen.ends:
        wrong = _JUDGES[face.mode](end, seen)
        if wrong is not None:
            what = f"it declares {face.mode.value}, and {wrong} (lane {end.lane})"
            return failed(what, GYMNASIUM, _at(seen, end))
    return passed(f"{len(seen.ends)} lanes ended and were treated as {face.mode.value} says")


def final_values(evidence: Evidence) -> Finding:
    """With same-step autoreset, the infos keep the last observation and info of the episode."""
    face = need(evidence.first.face)
    if face.mode is not AutoresetMode.SAME_STEP:
        return skipped("only same-step autoreset has final values")
    seen = _lanes(evidence)
    if not seen.ends:
        return skipped("no lane's episode ended")
    if autoreset(evidence).verdict == "failed":
        return skipped("it does not reset in the same step; see autoreset")
    for end in seen.ends:
        wrong = _final_fault(end)
        if wrong is not None:
            fix = (
                "Keep what the reset replaces: infos['final_obs'], ['final_info'], and their masks."
            )
            return failed(f"{wrong} (lane {end.lane})", fix, _at(seen, end))
    return passed("final_obs and final_info are there for the lanes that ended, and for no other")


def lane_seeds(evidence: Evidence) -> Finding:
    """Lane i has the seed of lane 0, plus i."""
    face = need(evidence.first.face)
    if (face.lanes or 1) < 2:
        return skipped("there is one lane")
    seen = _lanes(evidence)
    if seen.columns is None:
        return skipped(seen.raised or "the lanes could not be seeded")
    here, there = seen.columns
    listed = seen.listed
    if listed is None:
        return skipped(seen.raised or "the lanes could not be seeded with a list")
    shift = _shift(here, there)
    if isinstance(listed, Raised):
        # Gymnasium's own interface of lanes has no list of seeds, and no word about lanes.
        what = "lanes have no seed of their own" if shift else f"a list of seeds: {listed}"
        return noted(what, LANE_SEEDS, seen.place)
    if shift is not None:
        return failed(shift, LANE_SEEDS, seen.place)
    if listed != tuple(column[0] for column in here):
        return failed("a list of s + i starts otherwise than s itself", LANE_SEEDS, seen.place)
    if len({column[: min(map(len, here))] for column in here}) == 1:
        return noted("all lanes are the same: seeds make no difference here", "", seen.place)
    return passed("lane i has the seed s + i, also in a list")


def partial_reset(evidence: Evidence) -> Finding:
    """With autoreset disabled, lanes can be reset apart by a mask."""
    face = need(evidence.first.face)
    if face.mode is not AutoresetMode.DISABLED:
        return skipped("only with autoreset disabled")
    seen = _lanes(evidence)
    if seen.partial is None:
        return skipped(seen.raised or "the lanes could not be reset apart")
    part = seen.partial
    fix = "reset(options={'reset_mask': mask}) resets the lanes of the mask and leaves the others."
    if part.raised is not None:
        if not part.after and not part.undisturbed:
            return skipped(part.raised)
        return failed(part.raised, fix, seen.place)
    if part.after[0] != part.first[0]:
        return failed("lane 0 does not start as its seed says", fix, seen.place)
    if part.after[1:] != part.before[1:]:
        return failed("the other lanes' observations changed", fix, seen.place)
    for row, undisturbed in zip(part.continued, part.undisturbed, strict=False):
        if row[1:] != undisturbed[1:]:
            return failed("the other lanes do not go on as they would have", fix, seen.place)
    return passed("lane 0 was reset apart, and the others went on")


def _shift(here: Columns, there: Columns) -> str | None:
    """Return which lane is not what its left neighbour is for the next seed, or None."""
    for lane in range(1, len(here)):
        mine, its = here[lane], there[lane - 1]
        length = min(len(mine), len(its))
        if mine[:length] != its[:length]:
            return f"lane {lane} of reset(seed=s) is not lane {lane - 1} of reset(seed=s + 1)"
    return None


def _next_step(end: End, seen: Lanes) -> str | None:
    if end.after is None:
        return f"the step after an end raised: {end.refusal}"
    if end.lane in end.row.finals:
        return "the infos of the step that ended keep final values: it was reset in that step"
    if end.after.rewards[end.lane] != 0:
        return f"the reward of the step after an end is {end.after.rewards[end.lane]:g}, not 0"
    if end.after.ended[end.lane]:
        return "the step after an end has a flag"
    return None if end.ignores else "the step after an end used its action"


def _same_step(end: End, seen: Lanes) -> str | None:
    if end.after is None:
        return f"the step after an end raised: {end.refusal}"
    if end.lane not in end.row.finals and _resets_later(end):
        return "it is reset by the step after the end"
    final = end.row.finals.get(end.lane)
    last = end.row.observations[end.lane]
    if final is not None and final.observation == last and not seen.constant:
        return "the step that ended returned the last observation, not the next episode's first"
    return None


def _disabled(end: End, seen: Lanes) -> str | None:
    if end.lane in end.row.finals:
        return "the infos keep final values: it was reset in the step that ended"
    return "it is reset by the step after the end" if _resets_later(end) else None


_JUDGES = {
    AutoresetMode.NEXT_STEP: _next_step,
    AutoresetMode.SAME_STEP: _same_step,
    AutoresetMode.DISABLED: _disabled,
}


def _resets_later(end: End) -> bool:
    after = end.after
    if after is None:
        return False
    return end.ignores and after.rewards[end.lane] == 0 and not after.ended[end.lane]


def _final_fault(end: End) -> str | None:
    others = [lane for lane in end.row.finals if not end.row.ended[lane]]
    if others:
        return f"there are final values for lane {others[0]}, which has not ended"
    final = end.row.finals.get(end.lane)
    if final is None or final.observation is None:
        return "final_obs is missing"
    if not final.has_info:
        return "final_info is missing"
    return final.fault


def _lanes(evidence: Evidence) -> Lanes:
    seen = evidence.lanes
    if evidence.hung is not None and seen.columns is None:
        need(None)
    return seen


def _at(seen: Lanes, end: End) -> Place | None:
    return None if seen.place is None else Place(seen.place.seed, 0, end.step)
