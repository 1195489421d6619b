"""What a served environment drew, as callers get it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from rlcore import ProtocolException

from rlmesh.protocol.messages import Rendering
from rlmesh.transport.png import decode_png
from rlmesh.values import Array

# Some minutes of Atari frames; a message of some megabytes can claim, and unpack to, any number.
LARGEST_LIST: Final = 2**31


def rendered(drawn: Rendering, own: Callable[[Array], Any]) -> Any:  # Any: the framework's array
    """Return a frame, a text, a list of either, or None.

    Args:
        drawn: what has arrived.
        own: makes the caller's array of a frame.

    Raises:
        ProtocolException: a frame is no PNG file, or the frames are too large together.
    """
    if isinstance(drawn, bytes):
        return own(decode_png(drawn))
    if not isinstance(drawn, list):
        return drawn
    several: list[Any] = []  # Any: as above
    size = 0
    for one in drawn:
        if isinstance(one, str):
            several.append(one)
            continue
        pixels = decode_png(one)
        size += pixels.nbytes
        if size > LARGEST_LIST:
            raise ProtocolException(
                f"the first {len(several) + 1} of {len(drawn)} frames have {size} bytes already",
                hint="Render more often.",
            )
        several.append(own(pixels))
    return several
