"""What is typed while a run is watched in a terminal."""

from __future__ import annotations

from typing import Final

ESCAPE: Final = "escape"
_SEQUENCES: Final = {
    b"\x1b[C": "right",
    b"\x1bOC": "right",
    b"\x1b[D": "left",
    b"\x1bOD": "left",
}
_SINGLE: Final = {
    b"\x03": "interrupt",
    b"\x04": "quit",
    b"\t": "right",
    b" ": "pause",
    b"q": "quit",
    b"Q": "quit",
    b"n": "skip",
    b"N": "skip",
    b"s": "step",
    b"S": "step",
    b".": "step",
}


def typed(data: bytes) -> list[str]:
    """Return the keys in what was read: names, or `1` to `9` for a source; others are left out.

    An escape is a key of its own only at the end of what was read: what follows it belongs to it,
    be it known or not.
    """
    found: list[str] = []
    position = 0
    while position < len(data):
        length = _sequence(data, position)
        key = data[position : position + length]
        position += length
        if key == b"\x1b":
            found.append(ESCAPE)
        elif key in _SEQUENCES:
            found.append(_SEQUENCES[key])
        elif key in _SINGLE:
            found.append(_SINGLE[key])
        elif b"1" <= key <= b"9" and length == 1:
            found.append(key.decode())
    return found


def _sequence(data: bytes, start: int) -> int:
    """How many bytes belong to the key that begins here."""
    if data[start] != 0x1B or start + 1 == len(data):
        return 1
    introducer = data[start + 1 : start + 2]
    if introducer == b"O":
        return min(3, len(data) - start)
    if introducer != b"[":
        return 2  # Alt and a key, or two escapes
    end = start + 2
    while end < len(data) and not 0x40 <= data[end] <= 0x7E:
        end += 1
    return min(end + 1, len(data)) - start
