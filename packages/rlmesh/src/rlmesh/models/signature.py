"""How a predict callable wants to be called, read once from its signature."""

import inspect
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from rlmesh.models.context import EpisodeContext

Action = Any  # what an action is depends on the environment
Observation = Any  # likewise
Predict = Callable[[Observation, EpisodeContext], Action]

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_RECURRENT = frozenset({"state", "episode_start", "deterministic"})
_STATE_KEY = "rlmesh.policy_state"


def prediction(call: Callable[..., Action], *, deterministic: bool) -> Predict:
    """Return the call as a function of observation and episode, whatever it takes itself.

    A context is made only for those who take one: its seed costs more than many a policy.

    A parameter named `context`, or `*args`, gets the context. A policy with the parameters
    `state`, `episode_start` and `deterministic`, as those of stable-baselines3 have, gets these
    and gives back its action with its next state.
    """
    try:
        parameters = inspect.signature(call).parameters
    except (TypeError, ValueError):  # builtins and extension functions have none to read
        return lambda observation, episode: call(observation)
    if parameters.keys() >= _RECURRENT:
        return _recurrent(call, deterministic=deterministic)
    if (context := parameters.get("context")) is not None:
        if context.kind is inspect.Parameter.POSITIONAL_ONLY:
            return lambda observation, episode: call(observation, episode.following())
        return lambda observation, episode: call(observation, context=episode.following())
    if any(item.kind is inspect.Parameter.VAR_POSITIONAL for item in parameters.values()):
        return lambda observation, episode: call(observation, episode.following())
    return lambda observation, episode: call(observation)


def accepts_one(call: Callable[..., object]) -> bool:
    """Whether a hook takes a positional argument."""
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(
        item.kind in _POSITIONAL or item.kind is inspect.Parameter.VAR_POSITIONAL
        for item in parameters
    )


def _recurrent(call: Callable[..., Action], *, deterministic: bool) -> Predict:
    def predict(observation: Observation, episode: EpisodeContext) -> Action:
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
        action, memory[_STATE_KEY] = cast("tuple[Action, object]", answer)
        return action

    return predict
