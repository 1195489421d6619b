"""Whether a value is exactly what a space declares: its type, its shape, its range."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

import numpy as np
from rlcore import InvalidValueError

from rlmesh.conformance.kinds import is_array, is_integer, is_mapping, is_scalar, is_tuple
from rlmesh.spaces import (
    Box,
    Dict,
    Discrete,
    MultiBinary,
    MultiDiscrete,
    Space,
    Text,
    Tuple,
    UnsupportedSpaceError,
    from_gymnasium_space,
)
from rlmesh.spaces.coerce import shown
from rlmesh.values import Array

Judge: TypeAlias = Callable[[object], str | None]
"""Returns what is wrong with a value, or None."""

AnySpace: TypeAlias = Any  # gymnasium's, ours, or the user's own: whatever has contains and sample


def compile_judge(space: AnySpace, path: str = "$") -> Judge:
    """Return what judges values by a space, and is stricter than the space's own `contains`.

    Arrays must be arrays, of the declared element type and shape. A space of an unknown kind is
    asked itself.
    """
    children = _children(space)
    if isinstance(children, Mapping):
        inside = {key: compile_judge(child, f"{path}.{key}") for key, child in children.items()}
        return lambda value: _of_dict(value, inside, path)
    if children is not None:
        judges = [compile_judge(child, f"{path}[{i}]") for i, child in enumerate(children)]
        return lambda value: _of_tuple(value, judges, path)
    try:
        own = from_gymnasium_space(space)
    except UnsupportedSpaceError:
        return _asks(space, path)
    dtype = str(getattr(space, "dtype", None) or own.dtype)
    match own:
        case Box() | MultiBinary() | MultiDiscrete():
            return lambda value: _of_array(value, own, space, dtype, path)
        case Discrete():
            return lambda value: _of_discrete(value, own, path)
        case Text():
            return lambda value: _of_text(value, own, path)
        case _:
            return _asks(space, path)


def _children(space: AnySpace) -> Mapping[str, AnySpace] | tuple[AnySpace, ...] | None:
    match space:
        case Dict():
            return dict(space.items())
        case Tuple():
            return tuple(space)
        case Space():
            return None
        case _:
            pass
    # Gymnasium's OneOf has `spaces` as well; its values are no trees of them.
    names = {base.__name__ for base in type(space).__mro__}
    if "OneOf" in names or not hasattr(space, "spaces") or not names & {"Dict", "Tuple"}:
        return None
    found: object = space.spaces
    if is_mapping(found):
        return dict(found)
    return tuple(cast("tuple[AnySpace, ...]", found))


def _of_dict(value: object, inside: Mapping[str, Judge], path: str) -> str | None:
    if not is_mapping(value):
        return f"{path} is {shown(value)}, not a dict"
    missing, extra = inside.keys() - value.keys(), value.keys() - inside.keys()
    if missing or extra:
        what = f"lacks {sorted(missing)}" if missing else f"has the undeclared {sorted(extra)}"
        return f"{path} {what}"
    for key, judge in inside.items():
        wrong = judge(value[key])
        if wrong is not None:
            return wrong
    return None


def _of_tuple(value: object, judges: list[Judge], path: str) -> str | None:
    if not is_tuple(value):
        return f"{path} is {shown(value)}, not a tuple"
    if len(value) != len(judges):
        return f"{path} has {len(value)} items; the space has {len(judges)}"
    for judge, item in zip(judges, value, strict=True):
        wrong = judge(item)
        if wrong is not None:
            return wrong
    return None


def _of_array(
    value: object, own: Box | MultiBinary | MultiDiscrete, space: AnySpace, dtype: str, path: str
) -> str | None:
    shape = tuple(own.shape)
    # Arrays of other frameworks count; what only could be made an array does not.
    scalar = shape == () and is_scalar(value)
    if not (is_array(value) or scalar or hasattr(value, "__dlpack__")):
        return f"{path} is a {type(value).__name__}, not an array of {dtype}: {shown(value)}"
    array: Array = np.asarray(cast("Any", value))  # Any: an array, as was seen
    if str(array.dtype) != dtype:
        return f"{path} has the element type {array.dtype}, declared is {dtype}"
    if array.shape != shape:
        return f"{path} has the shape {array.shape}, declared is {shape}"
    if array.dtype.kind == "f" and np.isnan(array).any():
        return f"{path} holds NaN"
    try:
        own.check(array, path)
    except InvalidValueError as error:
        return error.message.removeprefix("the value at ")
    return None if space.contains(array) else f"{path} is {shown(array)}, not in {shown(space)}"


def _of_discrete(value: object, own: Discrete, path: str) -> str | None:
    if is_array(value) and value.shape == () and value.dtype.kind in "iu":
        value = cast("object", value.item())
    if not is_integer(value):
        return f"{path} is the {type(value).__name__} {shown(value)}, not an integer"
    try:
        own.check(value, path)
    except InvalidValueError as error:
        return error.message.removeprefix("the value at ")
    return None


def _of_text(value: object, own: Text, path: str) -> str | None:
    try:
        own.check(value, path)
    except InvalidValueError as error:
        return error.message.removeprefix("the value at ")
    return None


def _asks(space: AnySpace, path: str) -> Judge:
    def judge(value: object) -> str | None:
        try:
            contained = space.contains(value)
        except Exception as error:  # a space of the user's own may raise anything
            return f"{path}: {type(space).__name__}.contains raised {type(error).__name__}: {error}"
        return None if contained else f"{path} is {shown(value)}, not in {shown(space)}"

    return judge
