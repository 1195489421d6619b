"""How a predict callable wants to be called, read once from its signature."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import numpy as np

from rlmesh.models.context import EpisodeContext

# Any, in this room: what observations and actions are depends on the environment.
Predict: TypeAlias = Callable[[Any, EpisodeContext], Any]
"""One observation of an episode to one action."""

PredictChunk: TypeAlias = Callable[[Any, int, EpisodeContext], Any]
"""One observation and how many actions are wanted, to a chunk of actions."""

PredictBatch: TypeAlias = Callable[[Any, Sequence[EpisodeContext]], Any]
"""A batch of observations, one of each episode, to a batch of actions."""

PredictChunkBatch: TypeAlias = Callable[[Any, int, Sequence[EpisodeContext]], Any]
"""A batch of observations and how many actions are wanted of each, to a batch of chunks."""

HORIZON: Final = "execution_horizon"
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_RECURRENT = frozenset({"state", "episode_start", "deterministic"})
_STATE_KEY = "rlmesh.policy_state"
_Parameters: TypeAlias = Mapping[str, inspect.Parameter]
_Arguments: TypeAlias = Callable[[int, Callable[[], object]], tuple[list[Any], dict[str, Any]]]


def prediction(call: Callable[..., Any], *, deterministic: bool) -> Predict:
    """Return the call as a function of observation and episode, whatever it takes itself.

    A context is made only for those who take one: its seed costs more than many a policy.

    A parameter named `context`, or `*args`, gets the context. A policy with the parameters
    `state`, `episode_start` and `deterministic`, as those of stable-baselines3 have, gets these
    and gives back its action with its next state.
    """
    parameters = _parameters(call)
    if parameters.keys() >= _RECURRENT:
        return _recurrent(call, deterministic=deterministic)
    if (context := parameters.get("context")) is not None:
        if context.kind is inspect.Parameter.POSITIONAL_ONLY:
            return lambda observation, episode: call(observation, episode.following())
        return lambda observation, episode: call(observation, context=episode.following())
    if _is_variadic(parameters):
        return lambda observation, episode: call(observation, episode.following())

    def predict(observation: Any, episode: EpisodeContext) -> Any:
        episode.predict_index += 1
        return call(observation)

    return predict


def chunk_prediction(call: Callable[..., Any]) -> PredictChunk:
    """Return the call as a function of observation, horizon and episode."""
    arguments = _arguments(_parameters(call), ("context",), horizon=True)

    def predict(observation: Any, horizon: int, episode: EpisodeContext) -> Any:
        index = episode.predict_index
        args, kwargs = arguments(horizon, episode.following)
        episode.predict_index = index + 1
        return call(observation, *args, **kwargs)

    return predict


def batch_prediction(call: Callable[..., Any]) -> PredictBatch:
    """Return the call as a function of the batch and its episodes, given as contexts."""
    chunked = _batched(call, horizon=False)
    return lambda observations, episodes: chunked(observations, 1, episodes)


def chunk_batch_prediction(call: Callable[..., Any]) -> PredictChunkBatch:
    """Return the call as a function of the batch, the horizon and the episodes."""
    return _batched(call, horizon=True)


def accepts_one(call: Callable[..., object]) -> bool:
    """Whether a hook takes a positional argument."""
    return any(
        item.kind in _POSITIONAL or item.kind is inspect.Parameter.VAR_POSITIONAL
        for item in _parameters(call).values()
    )


def _batched(call: Callable[..., Any], *, horizon: bool) -> PredictChunkBatch:
    arguments = _arguments(_parameters(call), ("contexts", "context"), horizon=horizon)

    def predict(observations: Any, wanted: int, episodes: Sequence[EpisodeContext]) -> Any:
        before = [episode.predict_index for episode in episodes]
        args, kwargs = arguments(wanted, lambda: [episode.following() for episode in episodes])
        for episode, index in zip(episodes, before, strict=True):
            episode.predict_index = index + 1
        return call(observations, *args, **kwargs)

    return predict


def _arguments(parameters: _Parameters, names: tuple[str, ...], *, horizon: bool) -> _Arguments:
    """Return what makes the arguments after the observation, from a horizon and a context."""
    after = list(parameters.values())[1:]
    context = next((item for item in after if item.name in names), None)
    second = after[0] if after and after[0].kind in _POSITIONAL else None
    named = parameters.get(HORIZON) if horizon else None
    variadic = _is_variadic(parameters)
    by_place = by_name = False
    if named is not None and named.kind is inspect.Parameter.KEYWORD_ONLY:
        by_name = True
    elif horizon and second is not None and second.name not in names:
        by_place = True
    elif horizon:
        by_name = named is not None
        by_place = named is None and variadic

    def make(wanted: int, following: Callable[[], object]) -> tuple[list[Any], dict[str, Any]]:
        args: list[Any] = [wanted] if by_place else []
        kwargs: dict[str, Any] = {HORIZON: wanted} if by_name else {}
        if context is not None and context.kind is not inspect.Parameter.POSITIONAL_ONLY:
            kwargs[context.name] = following()
        elif context is not None or variadic:
            args.append(following())
        return args, kwargs

    return make


def _parameters(call: Callable[..., Any]) -> _Parameters:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(call, torch.nn.Module):
        module: Any = call
        call = module.forward  # its `__call__` takes anything, to pass on
    try:
        return inspect.signature(call).parameters
    except (TypeError, ValueError):  # builtins and extension functions have none to read
        return {}


def _is_variadic(parameters: _Parameters) -> bool:
    return any(item.kind is inspect.Parameter.VAR_POSITIONAL for item in parameters.values())


def _recurrent(call: Callable[..., Any], *, deterministic: bool) -> Predict:
    def predict(observation: Any, episode: EpisodeContext) -> Any:
        context = episode.following()
        memory = context["state"]
        # The policy's own convention: an array of one flag per environment.
        start = np.array([context["predict_index"] == 0])
        answer = call(
            observation,
            state=memory.get(_STATE_KEY),
            episode_start=start,
            deterministic=deterministic,
        )
        action, memory[_STATE_KEY] = cast("tuple[Any, object]", answer)
        return action

    return predict
