"""What both databases keep as it is."""

import math
from collections.abc import Iterable, Mapping
from typing import cast, overload


def plain(value: object) -> object:
    """The value as both databases keep it: no tuples, no numbers that JSON has not, no NUL."""
    if isinstance(value, Mapping):
        found = cast("Mapping[object, object]", value)
        return {storable(str(key)): plain(one) for key, one in found.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(one) for one in cast("Iterable[object]", value)]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    return storable(str(value))


@overload
def storable(text: str) -> str: ...
@overload
def storable(text: None) -> None: ...
def storable(text: str | None) -> str | None:
    """The text as both databases keep it; None stays None."""
    if text is None:
        return None
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")
