import struct
import time
import tracemalloc
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from rlcore import ProtocolException
from rlmesh.server.frames import png_of
from rlmesh.transport.png import SIGNATURE, decode_png, encode_png

SHAPES = st.tuples(st.integers(1, 6), st.integers(1, 6)).flatmap(
    lambda size: st.sampled_from([size, (*size, 3), (*size, 4)])
)
FRAMES = SHAPES.flatmap(lambda shape: arrays(np.uint8, shape))


@given(FRAMES)
def test_a_frame_comes_back_pixel_by_pixel(pixels: NDArray[np.uint8]) -> None:
    assert np.array_equal(decode_png(encode_png(pixels)), pixels)


def predicted(kind: int, left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    nearest = min((left, up, corner), key=lambda one: abs(guess - one))
    return (0, left, up, (left + up) // 2, nearest)[kind]


def filtered(pixels: NDArray[np.uint8], kind: int) -> bytes:
    """The pixels as a PNG file whose rows use one filter, written after the standard's text."""
    height, width, channels = pixels.shape
    flat = pixels.reshape(height, width * channels).astype(int)
    raw = bytearray()
    for y in range(height):
        raw.append(kind)
        for x in range(width * channels):
            left = flat[y, x - channels] if x >= channels else 0
            up = flat[y - 1, x] if y else 0
            corner = flat[y - 1, x - channels] if y and x >= channels else 0
            raw.append((flat[y, x] - predicted(kind, left, up, corner)) % 256)
    header = struct.pack(">IIBBBBB", width, height, 8, {3: 2, 4: 6}[channels], 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(bytes(raw))), (b"IEND", b""))
    return SIGNATURE + b"".join(
        struct.pack(">I", len(content)) + name + content + b"\0\0\0\0" for name, content in parts
    )


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("kind", [0, 1, 2, 3, 4])
def test_every_row_filter_of_the_standard_is_read(kind: int, channels: int) -> None:
    pixels = np.random.default_rng(kind).integers(0, 256, (5, 7, channels), np.uint8)
    assert np.array_equal(decode_png(filtered(pixels, kind)), pixels)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GIF89a",
        SIGNATURE,
        SIGNATURE + b"\0\0\0",
        encode_png(np.zeros((2, 2), np.uint8))[:-20],
        filtered(np.zeros((1, 1, 3), np.uint8), 0).replace(b"\x08\x02", b"\x10\x02", 1),
    ],
)
def test_what_is_no_png_is_a_protocol_error(data: bytes) -> None:
    with pytest.raises(ProtocolException):
        decode_png(data)


def test_a_small_file_cannot_claim_a_huge_picture() -> None:
    bomb = filtered(np.zeros((1, 1, 3), np.uint8), 0).replace(
        struct.pack(">II", 1, 1), struct.pack(">II", 2**31, 2**31), 1
    )
    with pytest.raises(ProtocolException, match="pixels"):
        decode_png(bomb)


@pytest.mark.parametrize(
    ("frame", "pixels"),
    [
        (np.array([[0.0, 0.5, 1.0]]), [[0, 128, 255]]),
        (np.array([[0, 300, -5]]), [[0, 255, 0]]),
        (np.array([[True, False]]), [[255, 0]]),
        (np.array([[[7], [9]]], np.uint8), [[7, 9]]),
        (np.full((3, 2, 5), 4, np.uint8), np.full((2, 5, 3), 4).tolist()),
    ],
)
def test_frames_of_other_forms_become_pictures(frame: object, pixels: object) -> None:
    png = png_of(frame)
    assert png is not None
    assert decode_png(png).tolist() == pixels


@pytest.mark.parametrize("frame", [None, "ansi", [1, 2], np.zeros((2, 2, 7)), np.zeros(3)])
def test_what_is_no_picture_is_no_frame(frame: object) -> None:
    assert png_of(frame) is None


def claimed(width: int, height: int, packed: bytes) -> bytes:
    """A file that says it has so many pixels, whatever is in it."""
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", packed), (b"IEND", b""))
    return SIGNATURE + b"".join(
        struct.pack(">I", len(content)) + name + content + b"\0\0\0\0" for name, content in parts
    )


def test_a_file_that_unpacks_to_gigabytes_is_refused_before_it_does() -> None:
    packer = zlib.compressobj(1)
    megabytes = b"".join(packer.compress(bytes(2**20)) for _ in range(256)) + packer.flush()
    assert len(megabytes) < 2**21
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolException, match="too many for a frame"):
            decode_png(claimed(65_535, 65_535, megabytes))
        with pytest.raises(ProtocolException, match=r"\d+ bytes of pixels instead of 5"):
            decode_png(claimed(1, 1, zlib.compress(b"")))
        assert decode_png(claimed(1, 1, megabytes)).shape == (1, 1, 4)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 * 2**20


def test_a_file_in_pieces_of_one_byte_is_read_in_one_go() -> None:
    packed = zlib.compress(bytes(200 * (1 + 255 * 4)), 0)
    assert len(packed) > 200_000
    whole = claimed(255, 200, b"")
    at = whole.index(b"IDAT") - 4
    pieces = b"".join(
        b"\0\0\0\1IDAT" + packed[at : at + 1] + b"\0\0\0\0" for at in range(len(packed))
    )
    started = time.monotonic()
    assert not decode_png(whole[:at] + pieces + whole[at:]).any()
    assert time.monotonic() - started < 5  # some tenths of a second; minutes, if each were copied
