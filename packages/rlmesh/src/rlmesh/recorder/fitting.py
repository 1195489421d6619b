"""Pictures of any size as frames of one video."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from rlmesh.runs.pictures import Picture

SMALLEST: Final = 16
"""Pixels of the shortest side that encoders and players take."""

LARGEST: Final = 8192


def video_size(height: int, width: int) -> tuple[int, int, int]:
    """Return the height and width of a video whose first picture has this size, and its scale.

    Odd sides lose a row or column, as published. A side under 16 is scaled up, both by the same
    integer.

    Raises:
        ValueError: a side is longer than 8192.
    """
    scale = math.ceil(SMALLEST / min(height, width))
    if max(height, width) * scale > LARGEST:
        # As far as it goes; what is missing on the short side becomes a black border.
        scale = max(1, LARGEST // max(height, width))
    tall, wide = height * scale, width * scale
    if max(tall, wide) > LARGEST:
        raise ValueError(f"a picture of {width} x {height} is too large for a video")
    return max(SMALLEST, tall - tall % 2), max(SMALLEST, wide - wide % 2), scale


def fitted(picture: Picture, height: int, width: int, scale: int) -> Picture:
    """Return a picture in the size of its video: scaled and cropped as its first one.

    One of another size is scaled to fit, keeping its shape, between black borders.
    """
    if scale > 1:
        picture = picture.repeat(scale, axis=0).repeat(scale, axis=1)
    tall, wide = picture.shape[:2]
    if (tall, wide) == (height, width):
        return picture
    if tall - tall % 2 == height and wide - wide % 2 == width:
        return np.ascontiguousarray(picture[:height, :width])
    ratio = min(height / tall, width / wide)
    if ratio != 1 and (tall > height or wide > width or ratio > 1):
        rows = np.arange(max(1, int(tall * ratio))) * tall // max(1, int(tall * ratio))
        columns = np.arange(max(1, int(wide * ratio))) * wide // max(1, int(wide * ratio))
        picture = picture[rows][:, columns]
        tall, wide = picture.shape[:2]
    framed: Picture = np.zeros((height, width, 3), np.uint8)
    top, left = (height - tall) // 2, (width - wide) // 2
    framed[top : top + tall, left : left + wide] = picture
    return framed
