"""The part of PNG that frames need: 8-bit grey, RGB and RGBA, without interlacing."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rlcore import ProtocolException

SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Frames are looked at once: time matters more than size.
LEVEL = 1
COLOUR_OF_CHANNELS = {1: 0, 3: 2, 4: 6}
CHANNELS_OF_COLOUR = {0: 1, 2: 3, 4: 2, 6: 4}
LARGEST_SIDE = 65_535
# An RGBA frame of 8K has 127 MiB; a file of some kilobytes can claim, and unpack to, gigabytes.
LARGEST_FRAME = 2**27

Pixels = NDArray[np.uint8]


def encode_png(pixels: Pixels) -> bytes:
    """Return contiguous (H, W), (H, W, 3) or (H, W, 4) pixels as a PNG file."""
    height, width = pixels.shape[:2]
    channels = pixels.shape[2] if pixels.ndim == 3 else 1
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each row begins with its filter, 0
    rows[:, 1:] = pixels.reshape(height, width * channels)
    header = struct.pack(">IIBBBBB", width, height, 8, COLOUR_OF_CHANNELS[channels], 0, 0, 0)
    return b"".join(
        (
            SIGNATURE,
            _chunk(b"IHDR", header),
            _chunk(b"IDAT", zlib.compress(rows.tobytes(), LEVEL)),
            _chunk(b"IEND", b""),
        )
    )


def decode_png(data: bytes) -> Pixels:
    """Return a PNG file's pixels: (H, W) for grey, else (H, W, 3) or (H, W, 4).

    Raises:
        ProtocolException: it is no PNG file, or of a kind that frames do not come in.
    """
    try:
        return _decode(data)
    except (struct.error, zlib.error, ValueError, IndexError) as error:
        raise ProtocolException(f"the frame is not a PNG file that can be read: {error}") from error


def _decode(data: bytes) -> Pixels:
    if not data.startswith(SIGNATURE):
        raise ValueError("it has no PNG signature")
    header = b""
    pieces: list[bytes] = []
    for kind, content in _chunks(data):
        if kind == b"IHDR":
            header = content
        elif kind == b"IDAT":
            pieces.append(content)
    width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", header)
    if depth != 8 or colour not in CHANNELS_OF_COLOUR or interlace:
        raise ValueError(f"depth {depth}, colour type {colour}, interlace {interlace}")
    if not 0 < width <= LARGEST_SIDE or not 0 < height <= LARGEST_SIDE:
        raise ValueError(f"it has {width} x {height} pixels")
    channels = CHANNELS_OF_COLOUR[colour]
    size = height * (1 + width * channels)
    if size > LARGEST_FRAME:
        raise ValueError(f"its {width} x {height} pixels take {size} bytes, too many for a frame")
    raw = zlib.decompressobj().decompress(b"".join(pieces), size)
    if len(raw) != size:
        raise ValueError(f"{len(raw)} bytes of pixels instead of {size}")
    pixels = _unfilter(np.frombuffer(raw, np.uint8).reshape(height, -1), channels)
    if channels == 1:
        return pixels
    shaped = pixels.reshape(height, width, channels)
    return shaped if channels > 2 else shaped[:, :, [0, 0, 0, 1]]


def _unfilter(rows: Pixels, channels: int) -> Pixels:
    filters, filtered = rows[:, 0], rows[:, 1:]
    if not filters.any():
        return filtered.copy()
    height, width = filtered.shape
    above = np.zeros(width, np.uint8)
    pixels = np.empty((height, width), np.uint8)
    for y in range(height):
        above = pixels[y] = _row(int(filters[y]), filtered[y], above, channels)
    return pixels


def _row(kind: int, row: Pixels, above: Pixels, channels: int) -> Any:  # Any: Pixels, numpy's sums
    if kind == 0:
        return row
    if kind == 1:  # left: a running sum, byte by byte of each channel
        return np.cumsum(row.reshape(-1, channels), axis=0, dtype=np.uint8).reshape(-1)
    if kind == 2:  # above
        return row + above
    if kind == 3:
        return _average(row.tolist(), above.tolist(), channels)
    if kind == 4:
        return _paeth(row.tolist(), above.tolist(), channels)
    raise ValueError(f"row filter {kind}")


def _average(row: list[int], above: list[int], channels: int) -> Pixels:
    for x, value in enumerate(row):
        left = row[x - channels] if x >= channels else 0
        row[x] = (value + (left + above[x]) // 2) & 0xFF
    return np.array(row, np.uint8)


def _paeth(row: list[int], above: list[int], channels: int) -> Pixels:
    for x, value in enumerate(row):
        left, corner = (row[x - channels], above[x - channels]) if x >= channels else (0, 0)
        up = above[x]
        guess = left + up - corner
        far = (abs(guess - left), abs(guess - up), abs(guess - corner))
        # The nearest of the three; ties go to the left, then to the one above.
        row[x] = (value + (left, up, corner)[far.index(min(far))]) & 0xFF
    return np.array(row, np.uint8)


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    position = len(SIGNATURE)
    while position < len(data):
        (size,) = struct.unpack_from(">I", data, position)
        content = data[position + 8 : position + 8 + size]
        if len(content) != size:
            raise ValueError("it is cut short")
        yield data[position + 4 : position + 8], content
        position += size + 12


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)
