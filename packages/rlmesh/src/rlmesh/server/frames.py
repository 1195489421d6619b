"""What environments draw, as it travels: frames are PNG files."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rlmesh.protocol.messages import Rendering
from rlmesh.transport.png import encode_png

CHANNELS = (1, 3, 4)


def drawn_of(given: object) -> tuple[Rendering, str]:
    """Return what `render` gave as it travels, and what it was if it cannot.

    That can be a picture, a text, or a list of either.
    """
    if isinstance(given, io.StringIO):
        given = given.getvalue()
    if given is None or isinstance(given, str):
        return given, ""
    if not isinstance(given, list | tuple):
        frame = png_of(given)
        return frame, "" if frame is not None else _named(given)
    several = cast("Sequence[object]", given)
    texts = [one for one in several if isinstance(one, str)]
    if texts and len(texts) == len(several):
        return texts, ""
    frames = [png_of(one) for one in several]
    pictures = [frame for frame in frames if frame is not None]
    if len(pictures) < len(several):
        odd = several[frames.index(None)]
        return None, f"{type(cast('object', given)).__name__} with {_named(odd)} in it"
    return pictures, ""


def _named(value: object) -> str:
    shape = getattr(value, "shape", None)
    return type(value).__name__ if shape is None else f"{type(value).__name__} of shape {shape}"


def png_of(frame: object) -> bytes | None:
    """Return a frame as a PNG file, or None when it is no picture.

    Pictures are (H, W), (H, W, C) and (C, H, W) with one, three or four channels. Floats up to 1
    are scaled, other numbers are clipped to what a byte holds.
    """
    if frame is None or isinstance(frame, str | list | tuple):
        return None
    pixels: NDArray[Any] = np.asarray(frame)  # Any: any element type
    if pixels.dtype.kind not in "biuf" or pixels.size == 0:
        return None
    if pixels.ndim == 3 and pixels.shape[2] not in CHANNELS and pixels.shape[0] in CHANNELS:
        pixels = np.moveaxis(pixels, 0, 2)
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    if pixels.ndim != 2 and not (pixels.ndim == 3 and pixels.shape[2] in CHANNELS):
        return None
    return encode_png(_bytes_of(pixels))


def _bytes_of(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    if pixels.dtype == np.uint8:
        return np.ascontiguousarray(pixels)
    if pixels.dtype.kind == "b":
        return pixels.astype(np.uint8) * np.uint8(255)
    finite = np.nan_to_num(pixels.astype(np.float64))
    if pixels.dtype.kind == "f" and finite.min() >= 0.0 and finite.max() <= 1.0:
        finite = finite * 255.0
    return np.clip(np.rint(finite), 0, 255).astype(np.uint8)
