"""From what a network puts out to actions of a space."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast

import numpy as np
from rlcore import ConfigurationError, InvalidActionError

from rlmesh.backends.host import host
from rlmesh.models.context import PredictContext
from rlmesh.spaces import Dict, Space, Tuple
from rlmesh.spaces.box import Box
from rlmesh.spaces.discrete import Discrete
from rlmesh.spaces.multi import MultiBinary, MultiDiscrete
from rlmesh.values import DTYPES, Array

# Any, in this room: what networks put out.

ActionOption: TypeAlias = Literal["auto", "raw", "argmax", "tanh"] | Callable[[Any], Any]
"""How outputs become actions; see `load_model`."""

Decide: TypeAlias = Callable[[Any, Sequence[PredictContext]], Any]
"""From the outputs for a batch, and its contexts, to a batch of actions."""

OPTIONS: Final = ("auto", "raw", "argmax", "tanh")


def checked_option(option: object) -> ActionOption:
    """Return how outputs become actions.

    Raises:
        ConfigurationError: there is no such way.
    """
    if callable(option) or option in OPTIONS:
        return cast("ActionOption", option)
    raise ConfigurationError(
        f"action is {option!r}",
        hint=f"It can be one of {', '.join(map(repr, OPTIONS))}, or a function.",
    )


def decider(option: ActionOption, space: Space, *, deterministic: bool, model: str) -> Decide:
    """Return what makes actions of a space from a network's outputs.

    Raises:
        ConfigurationError: the option, or sampling, does not go with such a space.
    """
    if callable(option):
        call = option
        return lambda outputs, contexts: call(outputs)
    if option == "raw":
        return lambda outputs, contexts: outputs
    return _of_space(option, space, deterministic, model, "$")


def _of_space(option: str, space: Space, deterministic: bool, model: str, path: str) -> Decide:
    match space:
        case Dict():
            named = {
                key: _of_space(option, child, deterministic, model, f"{path}.{key}")
                for key, child in space.items()
            }
            return lambda outputs, contexts: {
                key: decide(_part(outputs, key, path), contexts) for key, decide in named.items()
            }
        case Tuple():
            numbered = [
                _of_space(option, child, deterministic, model, f"{path}[{index}]")
                for index, child in enumerate(space)
            ]
            return lambda outputs, contexts: tuple(
                decide(_part(outputs, index, path), contexts)
                for index, decide in enumerate(numbered)
            )
        case Discrete() if option != "tanh":
            return _choices([int(space.n)], [int(space.start)], (), deterministic)
        case MultiDiscrete() if option != "tanh":
            sizes, starts = space.nvec.reshape(-1).tolist(), space.start.reshape(-1).tolist()
            return _choices(sizes, starts, tuple(space.shape), deterministic)
        case MultiBinary() if option == "auto" and deterministic:
            return _flags(tuple(space.shape))
        case Box() if option != "argmax" and deterministic:
            return _numbers(space, squash=option == "tanh", model=model)
        case _:
            what = f"action={option!r}" if deterministic else "deterministic=False"
            raise ConfigurationError(
                f"{what} does not make actions of {space!r}, which {model!r} should give at {path}",
                hint="Give action=FUNCTION, from the outputs for a batch to a batch of actions.",
            )


def _part(outputs: Any, key: Any, path: str) -> Any:
    try:
        return outputs[key]
    except (LookupError, TypeError, ValueError) as error:
        raise InvalidActionError(
            f"the outputs are {type(outputs).__name__} without {key!r}", path=path
        ) from error


def single_output(outputs: Any) -> Any:
    """Return the first of several outputs, where there are several: the others are no actions."""
    if isinstance(outputs, Mapping):
        named = cast("Mapping[str, Any]", outputs)
        for name in ("action", "actions", "logits"):
            if name in named:
                return named[name]
        return next(iter(named.values()))
    return cast("Sequence[Any]", outputs)[0] if isinstance(outputs, tuple | list) else outputs


def _array(outputs: Any) -> Array:
    return np.asarray(host(single_output(outputs)))


def _choices(
    sizes: Sequence[int], starts: Sequence[int], shape: tuple[int, ...], deterministic: bool
) -> Decide:
    """Return what chooses one number for each of some sizes, from scores or chosen already."""
    total, count = sum(sizes), len(sizes)
    ends = np.cumsum(sizes)[:-1]
    dims = shape or ()

    def decide(outputs: Any, contexts: Sequence[PredictContext]) -> Any:
        array = _array(outputs)
        rows = len(array) if array.ndim else 0
        if array.dtype.kind in "iu" and array.size == rows * count:
            return array.reshape(rows, *dims)
        if array.size != rows * total or rows == 0:
            raise InvalidActionError(
                f"the outputs have the shape {list(array.shape)}; a batch of scores for "
                f"{' + '.join(map(str, sizes))} choices is needed"
            )
        scores = array.reshape(rows, total)
        if np.isnan(scores).any():
            raise InvalidActionError("the scores hold NaN")
        parts = np.split(scores, ends, axis=1)
        chosen = np.stack(
            [
                (part.argmax(axis=1) if deterministic else _sampled(part, contexts, place))
                + starts[place]
                for place, part in enumerate(parts)
            ],
            axis=1,
        )
        return chosen.reshape(rows, *dims)

    return decide


def _sampled(scores: Array, contexts: Sequence[PredictContext], place: int) -> Array:
    """Return a choice for each row, with the probabilities of a softmax and the row's own seed."""
    wide = scores.astype(np.float64)
    weights = np.exp(wide - wide.max(axis=1, keepdims=True))
    chances = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    drawn = [_generator(context, place).random() for context in contexts]
    below: Array = (chances < np.array(drawn)[:, None]).sum(axis=1)
    # Sums of chances may end just under 1.
    return np.asarray(np.minimum(below, scores.shape[1] - 1))


def _generator(context: PredictContext, place: int) -> np.random.Generator:
    seed = context["predict_seed"]
    return np.random.default_rng(None if seed is None else [seed, place])


def _flags(shape: tuple[int, ...]) -> Decide:
    def decide(outputs: Any, contexts: Sequence[PredictContext]) -> Any:
        array = _array(outputs)
        if array.dtype.kind == "f":
            if np.isnan(array).any():
                raise InvalidActionError("the scores hold NaN")
            array = (array > 0).astype(np.int8)
        return _shaped(array, shape)

    return decide


def _numbers(space: Box, *, squash: bool, model: str) -> Decide:
    low, high, shape = space.low, space.high, tuple(space.shape)
    dtype = DTYPES[space.dtype]
    bounded = bool(np.isfinite(low).all() and np.isfinite(high).all())
    if squash and not (bounded and dtype.kind == "f"):
        raise ConfigurationError(
            f"action='tanh' needs a space of floats with bounds, and {model!r} acts in {space!r}",
            hint="Leave it out, or give a function.",
        )

    def decide(outputs: Any, contexts: Sequence[PredictContext]) -> Any:
        array = _shaped(_array(outputs), shape)
        if squash:
            array = low + (np.tanh(array.astype(np.float64)) + 1) / 2 * (high - low)
        # Networks are rarely bounded as their environments are; NaN stays, and is refused.
        return np.clip(array, low, high).astype(dtype) if array.dtype.kind in "fiu" else array

    return decide


def _shaped(array: Array, shape: tuple[int, ...]) -> Array:
    rows = len(array) if array.ndim else 0
    if array.shape == (rows, *shape) or array.size != rows * int(np.prod(shape, dtype=np.int64)):
        return array
    return array.reshape(rows, *shape)
