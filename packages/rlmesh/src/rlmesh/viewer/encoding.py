"""Pictures as files that a browser shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from io import BytesIO
from typing import Any, Final

from rlmesh.runs.pictures import Picture
from rlmesh.transport.png import encode_png

JPEG: Final = "image/jpeg"
PNG: Final = "image/png"

_ONE_SECOND: Final = Fraction(1, 1)


@dataclass(frozen=True, slots=True)
class FrameEncoder:
    """Encodes pictures into one kind of file.

    Attributes:
        mime: which kind.
        encode: returns a picture's file; may be called on any thread.
        advisory: what the user should know about the choice, or None.
    """

    mime: str
    encode: Callable[[Picture], bytes]
    advisory: str | None = None


def frame_encoder(wanted: str, quality: int) -> FrameEncoder:
    """Return an encoder of `jpeg` or `png` files; of PNG where nothing here can make JPEG.

    Args:
        wanted: `jpeg` or `png`.
        quality: of JPEG, from 1 to 100, as libjpeg counts it.
    """
    if wanted == "png":
        return FrameEncoder(PNG, encode_png)
    for made in (_by_av, _by_pillow):
        encode = made(quality)
        if encode is not None:
            return FrameEncoder(JPEG, encode)
    advisory = (
        "frames are sent as PNG, which takes longer: neither PyAV nor Pillow is installed to make "
        'JPEG. Install one: pip install "rlmesh[video]", or ask for View(format="png")'
    )
    return FrameEncoder(PNG, encode_png, advisory)


def _by_av(quality: int) -> Callable[[Picture], bytes] | None:
    try:
        av: Any = import_module("av")  # Any: an optional library, whose types are not at hand
    except ImportError:
        return None
    # libjpeg scales its tables by this; a scale of one is about the eighth step of FFmpeg's.
    scale = (50 / quality) if quality < 50 else (2 - quality / 50)
    step = str(min(max(round(8 * scale), 1), 31))

    def encode(picture: Picture) -> bytes:
        height, width = picture.shape[:2]
        codec = av.CodecContext.create("mjpeg", "w")
        codec.width, codec.height, codec.pix_fmt = width, height, "yuvj420p"
        codec.time_base = _ONE_SECOND
        codec.options = {"qmin": step, "qmax": step}
        frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
        packets = [*codec.encode(frame.reformat(format="yuvj420p")), *codec.encode(None)]
        return b"".join(map(bytes, packets))

    return encode


def _by_pillow(quality: int) -> Callable[[Picture], bytes] | None:
    try:
        image: Any = import_module("PIL.Image")  # Any: as above
    except ImportError:
        return None

    def encode(picture: Picture) -> bytes:
        file = BytesIO()
        image.fromarray(picture).save(file, "JPEG", quality=quality)
        return file.getvalue()

    return encode
