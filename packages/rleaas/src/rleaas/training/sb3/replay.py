"""The replay buffer as arrays: only its filled part, however large it may become."""

# stable-baselines3 leaves its type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer

_COLUMNS = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")
Place = tuple[int, bool]
"""Where the next step is written, and whether the buffer was full before."""


def place_of(buffer: ReplayBuffer) -> Place:
    """Where the buffer stands."""
    return buffer.pos, buffer.full


def replay_to_parts(buffer: ReplayBuffer, place: Place, limit: int) -> dict[str, object]:
    """What the buffer held when it stood at `place`, as arrays.

    Steps that were taken after that are left out; what they have overwritten meanwhile is lost, and
    is written again by the same steps before anybody looks at it.

    Args:
        buffer: the buffer.
        place: where it stood.
        limit: the most bytes that are kept; beyond it the newest steps are.
    """
    position, full = place
    filled = buffer.buffer_size if full else position
    kept = min(filled, max(1, limit // max(1, _row_bytes(buffer))))
    if kept == filled:
        rows = np.arange(filled)
    else:
        rows = np.arange(position - kept, position) % buffer.buffer_size
    return {
        "position": position if kept == filled else kept % buffer.buffer_size,
        "full": full and kept == filled,
        "size": buffer.buffer_size,
        "left_out": filled - kept,
        "columns": {name: array[rows] for name, array in _columns(buffer).items()},
    }


def replay_from_parts(buffer: ReplayBuffer, parts: Mapping[str, Any]) -> bool:
    """Fill a fresh buffer with what was kept; whether it is now as it was.

    A buffer of another size gets the newest steps that fit.

    Raises:
        KeyError, TypeError, ValueError: the parts are not those of such a buffer.
    """
    columns = _columns(buffer)
    kept = cast("Mapping[str, NDArray[Any]]", parts["columns"])
    forms, kept_forms = _forms(columns), _forms(kept)
    if forms != kept_forms:
        raise ValueError(f"steps are remembered as {forms}, not as {kept_forms}")
    position, full, count = int(parts["position"]), bool(parts["full"]), len(kept["rewards"])
    same = int(parts["size"]) == buffer.buffer_size
    order = np.arange(count)
    if not same:
        oldest = position if full else 0
        order = ((order + oldest) % max(1, count))[-buffer.buffer_size :]
        position, full = len(order) % buffer.buffer_size, len(order) == buffer.buffer_size
    for name, array in columns.items():
        array[: len(order)] = kept[name][order]
    buffer.pos, buffer.full = position, full
    return same and not parts["left_out"]


def _columns(buffer: ReplayBuffer) -> dict[str, NDArray[Any]]:
    found: dict[str, NDArray[Any]] = {}
    for name in _COLUMNS:
        value: Any = getattr(buffer, name)
        if isinstance(value, dict):
            found.update({f"{name}/{key}": one for key, one in value.items()})
        else:
            found[name] = value
    return found


def _forms(columns: Mapping[str, NDArray[Any]]) -> dict[str, tuple[int, ...]]:
    return {name: array.shape[1:] for name, array in sorted(columns.items())}


def _row_bytes(buffer: ReplayBuffer) -> int:
    return sum(array[:1].nbytes for array in _columns(buffer).values())
