"""JSON values from outside: which ones can be kept, and how a field is read."""

import math
from collections.abc import Mapping, Sequence
from typing import cast

MAX_DEPTH = 32


def problem_with(value: object, path: str = "$", depth: int = 0) -> str | None:
    """Say which part of the value cannot be stored and sent again; None when all can."""
    if depth > MAX_DEPTH:
        return f"{path} is nested deeper than {MAX_DEPTH} levels"
    if isinstance(value, str) and not is_text(value):
        return f"{path} holds a lone surrogate, which is not text"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{path} is {value}; JSON has no such number"
    for name, item in _parts(value):
        if not is_text(name):
            return f"a key under {path} holds a lone surrogate, which is not text"
        found = problem_with(item, f"{path}{name}", depth + 1)
        if found:
            return found
    return None


def _parts(value: object) -> list[tuple[str, object]]:
    if isinstance(value, dict):
        return [(f".{key}", item) for key, item in cast("dict[str, object]", value).items()]
    if isinstance(value, list):
        return [(f"[{index}]", item) for index, item in enumerate(cast("list[object]", value))]
    return []


def is_text(value: str) -> bool:
    """Whether the string can be written as UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def integer(value: object) -> int | None:
    """The value when it is a whole number, else None; booleans are not numbers."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return None


def number(value: object) -> float | None:
    """The value when it is a finite number, else None; booleans are not numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        told = float(value)
    except OverflowError:
        return None  # a whole number beyond every float
    return told if math.isfinite(told) else None


def text(value: object) -> str | None:
    """The value when it is a non-empty string, else None."""
    return value if isinstance(value, str) and value else None


def items(value: object) -> list[object]:
    """The value when it is a list, else an empty one."""
    return cast("list[object]", value) if isinstance(value, list) else []


def fields(value: object) -> dict[str, object]:
    """The value when it is an object, else an empty one."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def plain(value: object) -> object:
    """The value as JSON can carry it, written as the contract digest reads it.

    Numbers that JSON has no form for become texts, tuples become lists, bytes become hexadecimal.
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes | bytearray):
        return {"__bytes__": bytes(value).hex()}
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value)
        return {str(key): plain(item) for key, item in pairs.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in cast("Sequence[object]", value)]
    return value
