"""Learnable spaces as JSON, so that a checkpoint can say what its policy takes and gives."""

# stable-baselines3 and gymnasium leave their type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from rlcore import ConfigurationError


def space_to_json(space: gymnasium.Space[Any]) -> dict[str, object]:
    """Describe a Box, Discrete, MultiDiscrete, MultiBinary, Text, or a Dict of them.

    Raises:
        ConfigurationError: another kind of space.
    """
    match space:
        case spaces.Box():
            return {
                "kind": "box",
                "dtype": str(space.dtype),
                "shape": list(space.shape),
                "low": _bound(space.low),
                "high": _bound(space.high),
            }
        case spaces.Discrete():
            return {"kind": "discrete", "n": int(space.n), "start": int(space.start)}
        case spaces.MultiDiscrete():
            return {
                "kind": "multi_discrete",
                "dtype": str(space.dtype),
                "nvec": space.nvec.tolist(),
                "start": space.start.tolist(),
            }
        case spaces.MultiBinary():
            # MultiBinary(2) and MultiBinary([2]) are two spaces to gymnasium.
            size = space.n if isinstance(space.n, int) else [int(side) for side in space.n]
            return {"kind": "multi_binary", "n": size}
        case spaces.Dict():
            parts = {key: space_to_json(part) for key, part in space.spaces.items()}
            return {"kind": "dict", "spaces": parts}
        case spaces.Text():
            return {
                "kind": "text",
                "min_length": space.min_length,
                "max_length": space.max_length,
                "charset": "".join(sorted(space.character_set)),
            }
        case _:
            raise ConfigurationError(f"space {space} cannot be written into a checkpoint")


def space_from_json(described: Mapping[str, object]) -> gymnasium.Space[Any]:
    """Rebuild the space; anything malformed raises KeyError, TypeError or ValueError."""
    data = cast("Mapping[str, Any]", described)
    match data["kind"]:
        case "box":
            dtype, shape = np.dtype(data["dtype"]), tuple(data["shape"])
            low = np.broadcast_to(np.array(data["low"], dtype=float), shape).astype(dtype)
            high = np.broadcast_to(np.array(data["high"], dtype=float), shape).astype(dtype)
            return spaces.Box(low, high, shape, cast("Any", dtype.type))
        case "discrete":
            return spaces.Discrete(int(data["n"]), start=int(data["start"]))
        case "multi_discrete":
            return spaces.MultiDiscrete(
                np.array(data["nvec"]),
                dtype=cast("Any", np.dtype(data["dtype"]).type),
                start=np.array(data["start"]),
            )
        case "multi_binary":
            return spaces.MultiBinary(data["n"])
        case "dict":
            parts = cast("Mapping[str, Mapping[str, object]]", data["spaces"])
            return spaces.Dict({key: space_from_json(part) for key, part in parts.items()})
        case "text":
            lengths = int(data["min_length"]), int(data["max_length"])
            return spaces.Text(lengths[1], min_length=lengths[0], charset=str(data["charset"]))
        case kind:
            raise ValueError(f"unknown kind of space {kind!r}")


def _bound(bound: NDArray[Any]) -> object:
    # JSON has no infinity; float() reads these words back. Float64 holds every learnable bound:
    # the only integer boxes of 64 bits with larger ones are not observations of a network.
    exact = bound.astype(float)
    if exact.size and (exact == exact.flat[0]).all():
        return _word(float(exact.flat[0]))
    return _words(exact.tolist())


def _words(nested: object) -> object:
    if isinstance(nested, list):
        return [_words(item) for item in cast("list[object]", nested)]
    return _word(cast("float", nested))


def _word(number: float) -> float | str:
    return number if np.isfinite(number) else str(number)
