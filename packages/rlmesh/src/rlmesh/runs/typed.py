"""Whether the values of a record have the types of the dataclass that they are to become."""

from collections.abc import Iterable, Mapping
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints


def require_types(kind: type, values: Mapping[str, object], names: Iterable[str]) -> None:
    """Check values by the fields of those names; what is missing is not looked at.

    Only fields of plain types, and unions of them, can be asked for. Whole numbers are numbers;
    true and false are not.

    Raises:
        TypeError: one has another type.
    """
    types = _plain_types(kind)
    for name in names:
        if name in values and not _fits(values[name], types[name]):
            raise TypeError(f"{name} is {values[name]!r:.80}, of the wrong type")


def require_texts(values: Iterable[object], what: str) -> None:
    """Check that all values are texts; `what` is how errors call one.

    Raises:
        TypeError: one is not.
    """
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"{what} is {value!r:.80}")


def _fits(value: object, types: tuple[type, ...]) -> bool:
    if isinstance(value, bool):
        return bool in types
    return isinstance(value, types) or (isinstance(value, int) and float in types)


@cache
def _plain_types(kind: type) -> dict[str, tuple[type, ...]]:
    hints: dict[str, Any] = get_type_hints(kind)  # Any: annotations
    return {
        name: get_args(hint) if isinstance(hint, UnionType) else (hint,)
        for name, hint in hints.items()
        if get_origin(hint) is None or isinstance(hint, UnionType)
    }
