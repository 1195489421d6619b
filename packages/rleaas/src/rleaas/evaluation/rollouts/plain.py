"""What an environment gives, as JSON that any reader can read."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Final, cast

import numpy as np

from rleaas.evaluation.rollouts.record import Json

MAX_NUMBERS: Final = 4096
"""Larger arrays, such as pictures, are kept as their form and digest."""
_DEEPEST: Final = 24
_NUMBERS: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}


def plain(value: object, depth: int = 0) -> Json:
    """A value as JSON.

    NaN and infinite numbers become the texts `NaN`, `Infinity` and `-Infinity`, large arrays an
    object with `shape`, `dtype` and `sha256`, and what is none of these its type's name.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        number = float(value)
        return number if math.isfinite(number) else _NUMBERS.get(number, "NaN")
    if depth > _DEEPEST:
        return {"left_out": "too deep"}
    if isinstance(value, Mapping):
        parts = cast("Mapping[object, object]", value)
        return {_text(str(key)): plain(part, depth + 1) for key, part in parts.items()}
    if isinstance(value, list | tuple):
        return [plain(part, depth + 1) for part in cast("Sequence[object]", value)]
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    return _array(value, depth)


def _text(value: str) -> str:
    if value.isascii():
        return str.__str__(value)
    # Half a surrogate is no text to anybody else.
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def _array(value: object, depth: int) -> Json:
    if isinstance(value, np.generic):
        return plain(cast("object", value.item()), depth + 1)
    try:
        array = np.asarray(value)
    except Exception:
        # Whatever class it is, it decides what happens here.
        return {"left_out": type(value).__name__}
    if array.dtype.kind not in "biufU":
        return {"left_out": type(value).__name__}
    if array.size > MAX_NUMBERS:
        digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
        return {"shape": list(array.shape), "dtype": array.dtype.str, "sha256": digest}
    return plain(array.tolist(), depth + 1)
