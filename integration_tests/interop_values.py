"""What either side sees, in a form that can be compared: as JSON has it, lane by lane."""

# mypy knows the files of this folder under other names than a script beside them does.
# mypy: disable-error-code="import-not-found"

import hashlib
from collections.abc import Callable
from typing import Any, cast

import interop_envs as envs
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

Seen = Any  # what JSON holds

LARGE = 100  # elements; more are compared by their digest


def plain(value: object) -> Seen:
    """The value with arrays as lists, and what JSON has no words for as a text."""
    if isinstance(value, dict):
        parts = cast("dict[str, object]", value)
        return {key: plain(parts[key]) for key in sorted(parts)}
    if isinstance(value, list | tuple):
        return [plain(one) for one in cast("list[object]", value)]
    if isinstance(value, np.ndarray | np.generic):
        return plain(cast("NDArray[np.generic]", value).tolist())
    if isinstance(value, bytes):
        return f"bytes {value.hex()}"
    if isinstance(value, float) and not np.isfinite(value):
        return repr(value)
    return value


def typed(value: object) -> Seen:
    """As `plain`, with the element type and shape of each array."""
    if isinstance(value, dict):
        parts = cast("dict[str, object]", value)
        return {key: typed(parts[key]) for key in sorted(parts)}
    if isinstance(value, list | tuple):
        return [typed(one) for one in cast("list[object]", value)]
    if isinstance(value, np.ndarray):
        array = cast("NDArray[np.generic]", value)
        return [str(array.dtype), list(array.shape), plain(array)]
    return plain(value)


def known(info: dict[str, Any]) -> Seen:
    """The info without what a client adds of its own."""
    added = ("episode_ids", "completed_episodes")
    return {key: plain(info[key]) for key in sorted(info) if key not in added}


def sendable(value: object) -> object:
    """The value with gymnasium's int8 as uint8: the published client takes nothing else."""
    if isinstance(value, dict):
        return {key: sendable(part) for key, part in cast("dict[str, object]", value).items()}
    if isinstance(value, tuple):
        return tuple(sendable(part) for part in cast("tuple[object, ...]", value))
    if isinstance(value, np.ndarray):
        array = cast("NDArray[np.generic]", value)
        return array.astype(np.uint8) if array.dtype == np.int8 else array
    return value


def children(space: Any) -> Any:  # Any: gymnasium leaves its children's type open
    """The spaces that a Dict or a Tuple is made of."""
    return space.spaces


def told(value: Any, space: envs.Space) -> Seen:
    """A value of a space as JSON has it, with the element type and shape of each Box."""
    if isinstance(space, spaces.Dict):
        assert sorted(value) == sorted(children(space))
        return {key: told(value[key], child) for key, child in sorted(children(space).items())}
    if isinstance(space, spaces.Tuple):
        return [told(part, child) for part, child in zip(value, children(space), strict=True)]
    if isinstance(space, spaces.Box):
        array = np.asarray(value)
        large = array.size > LARGE
        content = hashlib.sha256(array.tobytes()).hexdigest() if large else plain(value)
        return [str(array.dtype), list(array.shape), content]
    if isinstance(space, spaces.Text):
        assert isinstance(value, str)
        return value
    # A published server makes all of MultiBinary uint8, and all of Discrete 64 bits wide.
    return [list(np.shape(value)), plain(value)]


def sampled(space: envs.Space, count: int) -> list[Any]:
    """Examples of a space, the same in every process; int8 stays where a Box declares it."""
    space.seed(99)
    found = [space.sample() for _ in range(count)]
    return found if isinstance(space, spaces.Box) else [sendable(one) for one in found]


def batched(values: list[Any], space: envs.Space) -> Any:
    """One action for each lane, as one tree: what both clients take."""
    if isinstance(space, spaces.Dict):
        parts = children(space)
        return {key: batched([one[key] for one in values], parts[key]) for key in parts}
    if isinstance(space, spaces.Tuple):
        columns = list(zip(*values, strict=True))
        return tuple(map(batched, map(list, columns), children(space)))
    if isinstance(space, spaces.Text):
        return list(values)
    return np.stack([np.asarray(one) for one in values])


def apart(value: Any, space: envs.Space, lanes: int) -> list[Any]:
    """A batch as one value for each lane."""
    if isinstance(space, spaces.Dict):
        parts = {key: apart(value[key], child, lanes) for key, child in children(space).items()}
        return [{key: parts[key][lane] for key in parts} for lane in range(lanes)]
    if isinstance(space, spaces.Tuple):
        columns = [
            apart(part, child, lanes) for part, child in zip(value, children(space), strict=True)
        ]
        return [tuple(column[lane] for column in columns) for lane in range(lanes)]
    assert len(value) == lanes
    return list(value)


def outcome(call: Callable[[], Any]) -> Seen:
    """What a call gives, or the names of the classes of what it raises."""
    try:
        return plain(call())
    except Exception as error:
        names = [one.__name__ for one in type(error).__mro__]
        return {"raised": names, "text": str(error)}
