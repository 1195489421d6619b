"""Checks of habits: what is declared, what happens at the edges, render, close."""

from __future__ import annotations

from rlcore import Error

from rlmesh.conformance.answers import Outcome
from rlmesh.conformance.evidence import Evidence, need, unseen
from rlmesh.conformance.kinds import is_mapping, is_number
from rlmesh.conformance.recording import Recording
from rlmesh.conformance.render_checks import names_in
from rlmesh.conformance.stage import Raised
from rlmesh.conformance.verdicts import Finding, Place, failed, noted, passed, skipped
from rlmesh.spaces.coerce import shown
from rlmesh.specs import AutoresetMode


def contract(evidence: Evidence) -> Finding:
    """The spaces and the metadata have a form on the wire, so that it can be served."""
    found = evidence.first.contract
    if found is None:
        raise unseen()
    if isinstance(found, Error):
        fix = found.hint or "Describe it with spaces that can be served, or wrap it."
        return failed(f"it cannot be served as it is: {found.message}", fix)
    return passed(f"it can be served, with the contract {found.digest[:19]}")


def action_space_kept(evidence: Evidence) -> Finding:
    """The action space is the same object each time, so that it can be seeded."""
    face = need(evidence.first.face)
    if face.unsteady is None:
        return passed("action_space is one object")
    one, other = face.unsteady
    fix = "Make it once, in __init__."
    if one != other:
        return failed(f"action_space is {shown(one)}, and read again {shown(other)}", fix)
    return noted("action_space is a new object each time: action_space.seed is lost on it", fix)


def metadata(evidence: Evidence) -> Finding:
    """The metadata is a dict, and true about render modes and frames per second."""
    face = need(evidence.first.face)
    if not is_mapping(face.metadata):
        return failed(f"the metadata is {shown(face.metadata)}, not a dict", "Make it a dict.")
    said = face.said
    modes = names_in(said.get("render_modes", ()))
    if modes is None:
        what = f"render_modes is {shown(said['render_modes'])}, not a list of names"
        return failed(what, "List the render modes.")
    if face.render_mode is not None and face.render_mode not in modes:
        what = f"render_mode is {face.render_mode!r}, render_modes are {list(modes)}"
        return failed(what, 'Name it in metadata["render_modes"].')
    rate = said.get("render_fps")
    if rate is None:
        if not modes:
            return passed("it declares no render modes")
        return noted("it has render modes and no render_fps", 'Set metadata["render_fps"].')
    if not is_number(rate) or not rate > 0:
        return failed(
            f"render_fps is {shown(rate)}, not a positive number", "Set frames per second."
        )
    return passed(f"render modes {', '.join(modes) or 'none'}, {rate} frames per second")


def made_again(evidence: Evidence) -> Finding:
    """Another instance can be had after the first was closed."""
    if evidence.subject.borrowed:
        return skipped("the instance is the caller's")
    second = evidence.second
    if second.unmade is not None:
        return failed(
            f"the second time: {second.unmade}", "Give back in close() what is exclusive."
        )
    need(second.recording)
    return passed("another one was had after the first was closed")


def reset_options(evidence: Evidence) -> Finding:
    """Reset takes options, and an empty dict of them changes nothing."""
    given = need(evidence.first.with_options)
    if isinstance(given, Raised):
        return failed(str(given), "Declare reset(self, *, seed=None, options=None).")
    moments = evidence.recording.moments
    if moments and moments[0].observation != given and not _starts_vary(evidence):
        what = "reset(seed, options={}) starts otherwise than reset(seed)"
        return failed(what, "Take an empty dict for no options.", moments[0].place)
    return passed("reset(seed, options={}) is reset(seed)")


def after_end(evidence: Evidence) -> Finding:
    """A step after the end does what is declared, and a reset mends all."""
    face = need(evidence.first.face)
    if face.lanes is not None:
        return skipped("see autoreset, which is about lanes")
    if not any(one.first_end for one in evidence.first.recordings.values()):
        return skipped("no episode ended; see episode_end")
    if evidence.second.unmade is not None:
        return skipped("there is no second instance; see made_again")
    seen = need(evidence.second.after_end)
    mended = _mended(evidence, seen.again)
    if mended is not None:
        fix = "Set everything that an episode changes in reset."
        return failed(f"after a step beyond the end, {mended}", fix, seen.place)
    if isinstance(seen.answer, Raised):
        if face.mode is AutoresetMode.NEXT_STEP:
            return failed(f"it declares {face.declared}, and {seen.answer}", _RESETS, seen.place)
        return passed("it refuses to step after an end")
    known = {check for one in evidence.first.recordings.values() for check in one.faults}
    new = [text for check, text in seen.answer.faults.items() if check not in known]
    if new:
        return failed(f"after an end, {new[0]}", "Answer in full, or raise.", seen.place)
    return _after(face.mode, seen.answer, seen.place)


def _after(mode: AutoresetMode | None, answer: Outcome, place: Place) -> Finding:
    reset = not answer.terminated and not answer.truncated and answer.reward == 0
    if mode is AutoresetMode.NEXT_STEP:
        if reset:
            return passed("the step after an end is a reset, as declared")
        what = f"the step after an end gave {answer.shown}, and it declares next-step autoreset"
        return failed(what, _RESETS, place)
    return passed("it goes on stepping after an end, and declares no autoreset")


def illegal_action(evidence: Evidence) -> Finding:
    """An environment survives an action outside its space."""
    second = evidence.second
    if second.unmade is not None:
        return skipped("there is no second instance; see made_again")
    need(second.recording)
    seen = second.illegal
    if seen is None:
        return skipped("no action is known that this space does not have")
    mended = _mended(evidence, seen.again)
    action = shown(seen.action)
    if mended is not None:
        fix = "Refuse it before anything is changed: action_space.contains(action)."
        return noted(f"after the action {action}, {mended}", fix)
    if isinstance(seen.answer, Raised):
        return passed(f"the action {action} was refused: {type(seen.answer.error).__name__}")
    # Gymnasium asks nobody to refuse it, and a server does so before the environment sees it.
    return passed(f"the action {action} was taken, and a reset is as before")


def close(evidence: Evidence) -> Finding:
    """Close can be called twice."""
    if evidence.subject.borrowed:
        return skipped("the instance is the caller's, and is not closed")
    for ordinal, raised in zip(("first", "second"), need(evidence.first.closings), strict=True):
        if raised is not None:
            fix = "Let close() do nothing where there is nothing left to close."
            return failed(f"the {ordinal} time, {raised}", fix)
    return passed("close() can be called twice")


def in_time(evidence: Evidence) -> Finding:
    """Every call returns within the timeout."""
    if evidence.hung is not None:
        fix = "Bound what the environment waits for, or raise --timeout if it is only slow."
        return failed(str(evidence.hung), fix)
    return passed(f"every call returned within {evidence.seconds:g} s")


def warnings(evidence: Evidence) -> Finding:
    """Nothing warns during a play."""
    told = {
        f"{one.category.__name__}: {' '.join(str(one.message).split())}" for one in evidence.caught
    }
    if not told:
        return passed("nothing warned")
    return noted(f"{len(told)} warnings: {'; '.join(sorted(told)[:3])}", "Look into them.")


_RESETS = "Reset in the step after an end: reward 0, no flag, the first observation."


def _mended(evidence: Evidence, again: bytes | Raised) -> str | None:
    """Return what is wrong with the seeded reset that followed, or None."""
    if isinstance(again, Raised):
        return f"reset fails: {again}"
    moments = evidence.recording.moments
    if moments and moments[0].observation != again and not _starts_vary(evidence):
        return "reset(seed) starts otherwise than before"
    return None


def _starts_vary(evidence: Evidence) -> bool:
    """Tell whether seeds do not settle first observations, so that these tell nothing."""
    others = [evidence.first.again, evidence.second.recording]
    firsts = {_first(one) for one in (evidence.recording, *others) if one is not None}
    return len(firsts) > 1


def _first(recording: Recording) -> bytes:
    return recording.moments[0].observation if recording.moments else b""
