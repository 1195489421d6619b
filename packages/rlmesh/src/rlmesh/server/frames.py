"""Rendered frames as PNG files, which is how they travel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlmesh.transport.png import encode_png

CHANNELS = (1, 3, 4)


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
