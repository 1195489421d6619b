"""Arrays of many kinds as pictures: 8-bit RGB, rows first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from rlmesh.backends.host import host
from rlmesh.spaces import Box, Space

Picture: TypeAlias = NDArray[np.uint8]
"""Pixels, uint8 of shape (H, W, 3), contiguous and nobody else's."""

Layout: TypeAlias = Literal["hwc", "chw", "hw"]

SMALLEST_SIDE = 8
"""What has a shorter side is a grid of codes (7 x 7 x 3 in MiniGrid) rather than a picture."""

_CHANNELS = (1, 3, 4)


@dataclass(frozen=True, slots=True)
class PictureForm:
    """How the arrays of a space are read as pictures.

    Attributes:
        layout: which dimension is which.
        bounds: what is drawn black and what white; None where each picture tells by its own values.
    """

    layout: Layout
    bounds: tuple[float, float] | None = None


def picture_form(space: Space) -> PictureForm | None:
    """Return how to read a space's arrays as pictures, or None where they do not look like any.

    Boxes of uint8, and of floats with the same finite bounds for all elements, do where they are
    (H, W, C), (C, H, W) or (H, W) with 1, 3 or 4 channels and no side under 8.
    """
    if not isinstance(space, Box):
        return None
    layout = _layout(tuple(space.shape))
    if layout is None:
        return None
    if space.dtype == "uint8":
        return PictureForm(layout, (0.0, 255.0))
    ends = space.uniform_bounds
    if not space.dtype.startswith("float") or ends is None:
        return None
    low, high = float(ends[0]), float(ends[1])
    if not (math.isfinite(low) and math.isfinite(high)) or low == high:
        return None
    return PictureForm(layout, (low, high))


def picture(value: object, form: PictureForm | None = None) -> Picture | None:
    """Return an array of any framework as a picture of its own; None where it is none.

    Grey becomes RGB and alpha is dropped. Of four channels that come first, which is how frames
    are stacked, the last is shown, the newest. Floats and wide integers are scaled by the form's
    bounds; without these from [0, 1], [-1, 1], or from their least to their greatest.

    Args:
        value: the array, a `Tensor`, or a tensor of torch or jax.
        form: how to read it; by default as (H, W) or (H, W, C).
    """
    pixels: NDArray[Any] = np.asarray(host(value))  # Any: elements of any type
    layout = _layout(pixels.shape, smallest=1, first="hwc") if form is None else form.layout
    if layout is None or pixels.ndim != len(layout) or 0 in pixels.shape:
        return None
    if pixels.dtype.kind not in "buif":
        return None
    if layout == "hw":
        pixels = pixels[:, :, None]
    elif layout == "chw":
        pixels = pixels[-1:] if pixels.shape[0] == 4 else pixels
        pixels = pixels.transpose(1, 2, 0)
    if pixels.shape[2] not in _CHANNELS:
        return None
    scaled = _scaled(pixels[:, :, :3], None if form is None else form.bounds)
    height, width = scaled.shape[:2]
    own: Picture = np.empty((height, width, 3), np.uint8)
    own[:] = scaled
    return own


def tiled(pictures: Sequence[Picture | None]) -> Picture | None:
    """Return several pictures as one, row by row in a grid; missing ones are black.

    Cells have the size of the largest picture. None where there is no picture at all.
    """
    present = [one for one in pictures if one is not None]
    if not present:
        return None
    if len(pictures) == 1:
        return present[0]
    height = max(one.shape[0] for one in present)
    width = max(one.shape[1] for one in present)
    columns = math.ceil(math.sqrt(len(pictures) * height / width))
    columns = min(max(columns, 1), len(pictures))
    rows = math.ceil(len(pictures) / columns)
    grid: Picture = np.zeros((rows * height, columns * width, 3), np.uint8)
    for index, one in enumerate(pictures):
        if one is not None:
            top, left = index // columns * height, index % columns * width
            grid[top : top + one.shape[0], left : left + one.shape[1]] = one
    return grid


def _layout(
    shape: tuple[int, ...], *, smallest: int = SMALLEST_SIDE, first: Layout | None = None
) -> Layout | None:
    if len(shape) == 2:
        return "hw" if min(shape) >= smallest else None
    if len(shape) != 3:
        return None
    if shape[2] in _CHANNELS and min(shape[:2]) >= smallest:
        return "hwc"
    if first is None and shape[0] in _CHANNELS and min(shape[1:]) >= smallest:
        return "chw"
    return None


def _scaled(pixels: NDArray[Any], bounds: tuple[float, float] | None) -> NDArray[Any]:
    if pixels.dtype == np.uint8:
        return pixels
    if pixels.dtype.kind == "b":
        return pixels.astype(np.uint8) * np.uint8(255)
    values = pixels.astype(np.float32)
    low, high = _range(values) if bounds is None else bounds
    if high <= low:
        return np.zeros(values.shape, np.uint8)
    shades = (values - np.float32(low)) * np.float32(255 / (high - low))
    # What is no number is drawn black: a picture with one has to be seen as well.
    np.nan_to_num(shades, copy=False, nan=0.0, posinf=255.0, neginf=0.0)
    return cast("NDArray[Any]", np.clip(np.rint(shades), 0, 255).astype(np.uint8))


def _range(values: NDArray[np.float32]) -> tuple[float, float]:
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    if max(-low, high) <= 1.0:
        return (0.0, 1.0) if low >= 0 else (-1.0, 1.0)
    return low, high
