"""Pictures as a terminal draws them: inline images where it can, else half blocks."""

from __future__ import annotations

import base64
import zlib
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from rlcore.environ import variable

from rlmesh.runs.pictures import Picture
from rlmesh.transport.png import encode_png

Kind: TypeAlias = Literal["kitty", "iterm2", "blocks"]

IMAGE_ID: Final = 4711
_CHUNK: Final = 4096
_DIGITS: Final = np.array([list(f"{n:03d}".encode()) for n in range(256)], np.uint8)
_CELL: Final = "\x1b[38;2;000;000;000;48;2;000;000;000m▀".encode()
_COLOURS_AT: Final = (7, 11, 15, 24, 28, 32)
"""Where in a cell the numbers of the upper and the lower colour begin."""


def terminal_kind(environ: dict[str, str] | None = None) -> Kind:
    """Return how the terminal of these environment variables draws pictures."""

    def known(name: str) -> str:
        return (variable(name, environ) or "").lower()

    if known("TMUX") or known("TERM").startswith(("screen", "tmux")):
        return "blocks"  # a multiplexer passes no images on
    if known("KITTY_WINDOW_ID") or "kitty" in known("TERM") or "ghostty" in known("TERM"):
        return "kitty"
    if known("TERM_PROGRAM") == "ghostty":
        return "kitty"
    if known("TERM_PROGRAM") in ("iterm.app", "wezterm") or known("LC_TERMINAL") == "iterm2":
        return "iterm2"
    return "blocks"


def fitted(
    size: tuple[int, int], columns: int, rows: int, cell: tuple[int, int] | None
) -> tuple[int, int]:
    """Return how many columns and rows a picture takes, as large as fits, in its own proportions.

    Args:
        size: its width and height in pixels.
        columns: how many columns there are.
        rows: how many rows there are.
        cell: width and height of a cell in pixels; by default it is twice as high as wide.
    """
    width, height = size
    wide, high = cell or (1, 2)
    # One column of the picture is `wide` on the screen, one row `high`.
    scale = min(columns * wide / width, rows * high / height)
    return (
        min(max(round(width * scale / wide), 1), columns),
        min(max(round(height * scale / high), 1), rows),
    )


def blocks(picture: Picture, columns: int, rows: int) -> list[bytes]:
    """Return a picture as lines of half blocks in 24-bit colour, two pixels in each cell."""
    pixels = resized(picture, columns, rows * 2)
    pairs = pixels.reshape(rows, 2, columns, 3).transpose(0, 2, 1, 3).reshape(rows, columns, 6)
    lines: NDArray[np.uint8] = np.empty((rows, columns, len(_CELL)), np.uint8)
    lines[:] = np.frombuffer(_CELL, np.uint8)
    for index, start in enumerate(_COLOURS_AT):
        lines[:, :, start : start + 3] = _DIGITS[pairs[:, :, index]]
    return [line.tobytes() + b"\x1b[0m" for line in lines]


def resized(picture: Picture, width: int, height: int) -> Picture:
    """Return a picture in another size: the mean of what falls on each pixel."""
    return _along(_along(picture, height, 0), width, 1)


def kitty(picture: Picture, columns: int, rows: int) -> bytes:
    """Return what draws a picture at the cursor in Kitty and Ghostty, in place of the last one."""
    height, width = picture.shape[:2]
    data = base64.b64encode(zlib.compress(picture.tobytes(), 1))
    parts = [data[start : start + _CHUNK] for start in range(0, len(data), _CHUNK)]
    # q=2: the terminal answers nothing, which would be read as keys. C=1: the cursor stays.
    head = (
        f"a=T,f=24,o=z,s={width},v={height},i={IMAGE_ID},p=1,c={columns},r={rows},q=2,C=1,"
    ).encode()
    drawn: list[bytes] = []
    for index, part in enumerate(parts):
        more = b"m=1" if index < len(parts) - 1 else b"m=0"
        drawn.append(b"\x1b_G" + (head if index == 0 else b"q=2,") + more + b";" + part + b"\x1b\\")
    return b"".join(drawn)


def kitty_gone() -> bytes:
    """Return what removes the picture from Kitty and Ghostty."""
    return f"\x1b_Ga=d,d=I,i={IMAGE_ID},q=2\x1b\\".encode()


def iterm2(picture: Picture, columns: int, rows: int) -> bytes:
    """Return what draws a picture at the cursor in iTerm2 and WezTerm."""
    file = encode_png(picture)
    facts = f"inline=1;size={len(file)};width={columns};height={rows};preserveAspectRatio=0"
    return b"\x1b]1337;File=" + facts.encode() + b":" + base64.b64encode(file) + b"\x07"


def _along(picture: Picture, size: int, axis: int) -> Picture:
    length = picture.shape[axis]
    if length == size:
        return picture
    edges = np.arange(size + 1) * length // size
    if length < size:
        return picture[edges[:-1]] if axis == 0 else picture[:, edges[:-1]]
    sums: NDArray[np.uint32] = np.add.reduceat(picture, edges[:-1], axis=axis, dtype=np.uint32)
    shape = [1, 1, 1]
    shape[axis] = size
    mean: Picture = (sums // np.diff(edges).reshape(shape)).astype(np.uint8)
    return mean
