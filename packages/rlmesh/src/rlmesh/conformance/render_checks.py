"""The check of render: frames of the declared mode."""

from __future__ import annotations

import numpy as np
from rlcore import Error

from rlmesh.conformance.evidence import Evidence, need, unseen
from rlmesh.conformance.kinds import is_array, is_row
from rlmesh.conformance.stage import Raised
from rlmesh.conformance.verdicts import Finding, failed, passed, skipped
from rlmesh.spaces.coerce import shown

LISTS = "_list"


def render(evidence: Evidence) -> Finding:
    """Render gives frames of the declared mode."""
    face = need(evidence.first.face)
    mode = face.render_mode
    if mode is None:
        return _asked_to_render(evidence)
    if evidence.second.unmade is not None:
        return skipped("there is no second instance; see made_again")
    if evidence.subject.address is not None and mode != "rgb_array":
        return skipped(f"the server renders {mode!r}, which does not travel as frames")
    frames = evidence.second.frames
    if frames is None:
        raise unseen()
    return _frames(frames, str(mode), face.lanes)


def names_in(modes: object) -> tuple[str, ...] | None:
    """Return the names in a list of them, or None where it is no such list."""
    if not is_row(modes) or not all(isinstance(name, str) for name in modes):
        return None
    return tuple(str(name) for name in modes)


def _asked_to_render(evidence: Evidence) -> Finding:
    """Judge each mode that an environment declares, made with that mode."""
    face, subject = need(evidence.first.face), evidence.subject
    modes = [one for one in names_in(face.said.get("render_modes", ())) or () if one != "human"]
    if not modes:
        return skipped("it declares no render mode that gives frames")
    said = f"it declares {', '.join(modes)}"
    if subject.address is not None:
        return skipped(f"{said}, and is served without a render mode")
    if subject.borrowed:
        return skipped(f"{said}, and was made without a render mode")
    if face.lanes is not None or not subject.takes_render_mode:
        return skipped(f"{said}, and what makes it takes no render_mode")
    for mode in modes:
        frames = evidence.rendering(mode)
        if isinstance(frames, Error):
            return skipped(f"it could not be made with render_mode={mode!r}: {frames.message}")
        if frames is None:
            raise unseen()
        finding = _frames(frames, mode, None)
        if finding.verdict != "passed":
            return finding
    return passed(f"frames are as declared: {', '.join(modes)}")


def _frames(frames: list[object] | Raised, mode: str, lanes: int | None) -> Finding:
    fix = f"Return from render() what the mode {mode!r} promises."
    if isinstance(frames, Raised):
        return failed(f"render_mode {mode!r}: {frames}", fix)
    for frame in frames:
        wrong = _lane_frames(frame, mode, lanes)
        if wrong is not None:
            return failed(f"render_mode {mode!r}: render() gave {wrong}", fix)
    return passed(f"{len(frames)} frames of the mode {mode!r} are as declared")


def _lane_frames(frame: object, mode: str, lanes: int | None) -> str | None:
    if lanes is None or mode == "human":
        return _frame_fault(frame, mode)
    if not is_row(frame) or len(frame) != lanes:
        return f"{shown(frame)}, not a tuple of {lanes} frames"
    faults = (_frame_fault(one, mode) for one in frame)
    return next((fault for fault in faults if fault is not None), None)


def _frame_fault(frame: object, mode: str) -> str | None:
    if mode.endswith(LISTS):
        if not is_row(frame):
            return f"{shown(frame)}, not a list"
        faults = (_frame_fault(one, mode.removesuffix(LISTS)) for one in frame)
        return next((fault for fault in faults if fault is not None), None)
    match mode:
        case "human":
            return None if frame is None else f"{shown(frame)}, not None"
        case "ansi":
            return None if isinstance(frame, str) else f"{shown(frame)}, not a str"
        case "rgb_array":
            return _pixels_fault(frame)
        case _:
            return "None" if frame is None else None


def _pixels_fault(frame: object) -> str | None:
    if not is_array(frame):
        return f"{shown(frame)}, not an array"
    if frame.dtype == np.uint8 and frame.ndim == 3 and frame.shape[2] in (3, 4) and frame.size:
        return None
    return f"{frame.dtype} of shape {frame.shape}, not uint8 of shape (H, W, 3)"
