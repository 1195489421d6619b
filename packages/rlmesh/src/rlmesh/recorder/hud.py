"""Words on pictures: a small font of our own, so that no file and no library is needed."""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rlmesh.runs.pictures import Picture

# Five columns by seven rows; a row is five bits, the leftmost one the highest.
_GLYPHS: Final = {
    " ": (0, 0, 0, 0, 0, 0, 0),
    "0": (14, 17, 19, 21, 25, 17, 14),
    "1": (4, 12, 4, 4, 4, 4, 14),
    "2": (14, 17, 1, 2, 4, 8, 31),
    "3": (31, 2, 4, 2, 1, 17, 14),
    "4": (2, 6, 10, 18, 31, 2, 2),
    "5": (31, 16, 30, 1, 1, 17, 14),
    "6": (6, 8, 16, 30, 17, 17, 14),
    "7": (31, 1, 2, 4, 8, 8, 8),
    "8": (14, 17, 17, 14, 17, 17, 14),
    "9": (14, 17, 17, 15, 1, 2, 12),
    "a": (0, 0, 14, 1, 15, 17, 15),
    "d": (1, 1, 13, 19, 17, 17, 15),
    "e": (0, 0, 14, 17, 31, 16, 14),
    "i": (4, 0, 12, 4, 4, 4, 14),
    "n": (0, 0, 22, 25, 17, 17, 17),
    "o": (0, 0, 14, 17, 17, 17, 14),
    "p": (0, 0, 30, 17, 30, 16, 16),
    "r": (0, 0, 22, 25, 16, 16, 16),
    "s": (0, 0, 14, 16, 14, 1, 30),
    "t": (8, 8, 28, 8, 8, 9, 6),
    "u": (0, 0, 17, 17, 17, 19, 13),
    "f": (6, 9, 8, 28, 8, 8, 8),
    "-": (0, 0, 0, 31, 0, 0, 0),
    "+": (0, 4, 4, 31, 4, 4, 0),
    ".": (0, 0, 0, 0, 0, 12, 12),
}
_CELL: Final = (9, 6)
_DARKEN: Final = 3
"""What is behind the words keeps a third of its light."""


def hud_text(*, episode: int, step: int, total: float, seed: int | None) -> str:
    """Return the line that is drawn on a frame."""
    seeded = "" if seed is None else f"  seed {seed}"
    return f"episode {episode}  step {step}  return {total:.2f}{seeded}"


def draw(frame: Picture, text: str) -> None:
    """Draw words along the top of a frame, in place, as large as fits; what does not is cut off.

    Args:
        frame: uint8 (H, W, 3).
        text: digits, signs, and the letters that `hud_text` needs; others are left blank.
    """
    height, width = frame.shape[:2]
    scale = max(1, min(height // 120, width // (len(text) * _CELL[1] or 1)))
    mask = np.kron(_mask(text), np.ones((scale, scale), np.bool_))[:height, :width]
    strip = frame[: mask.shape[0]]
    strip //= _DARKEN
    strip[:, : mask.shape[1]][mask] = 255


@cache
def _glyph(letter: str) -> NDArray[np.bool_]:
    rows = _GLYPHS.get(letter, _GLYPHS[" "])
    cell = np.zeros(_CELL, np.bool_)
    for at, row in enumerate(rows):
        cell[at + 1, 1:] = [bool(row & (16 >> column)) for column in range(5)]
    return cell


def _mask(text: str) -> NDArray[np.bool_]:
    return np.concatenate([_glyph(letter) for letter in text], axis=1)
