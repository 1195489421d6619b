"""How an episode of a Gymnasium environment becomes a trajectory.

The tools of a step are, of these, the first that is there:

1. `info["tool_calls"]`: a list of names, or of `{"tool" or "name", "arguments", "result"}`.
2. `info["tool_name"]` or `info["tool"]`, with `info["tool_arguments"]` and `info["tool_result"]`.
3. An action that is text and holds a JSON object of that form, or one with `tool_calls`.
4. A Discrete action whose number has a name in the environment's `metadata["action_names"]`:
   a list that begins at the space's first action, or an object from numbers to names.

The state at the end is `info["state"]` of the last step where that is an object, else the last info
itself without the keys above. Values that are no plain data are left out of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from rleaas.verify.trajectory import Step, ToolCall, Trajectory, call_of, calls_in
from rleaas.verify.values import Value, data

ACTION_NAMES = "action_names"
STATE = "state"
TOOL_CALLS = "tool_calls"
TOOL_NAMES = ("tool_name", "tool")
TOOL_ARGUMENTS = "tool_arguments"
TOOL_RESULT = "tool_result"
_LONGEST_ACTION = 1_000_000
_OURS = frozenset((TOOL_CALLS, *TOOL_NAMES, TOOL_ARGUMENTS, TOOL_RESULT, STATE, "episode"))


class EpisodeRecorder:
    """Keeps what verifiers need of the episode that is being played.

    `observations` says whether one of them may look at what was observed, and at infos.
    """

    def __init__(
        self, *, action_names: Mapping[int, str] | None = None, observations: bool = True
    ) -> None:
        self._names = action_names or {}
        self._observations = observations
        self._steps: list[Step] = []
        self._last: Mapping[str, object] = {}
        self._truncated = False

    def begin(self, info: Mapping[str, object]) -> None:
        """Forget the episode before; `info` is that of the reset."""
        self._steps = []
        self._last = info
        self._truncated = False

    def step(
        self,
        action: object,
        observation: object,
        reward: float,
        info: Mapping[str, object],
        *,
        truncated: bool = False,
    ) -> None:
        """Keep a step."""
        self._last = info
        self._truncated = truncated
        calls = tool_calls_of(action, info, self._names)
        if self._observations:
            step = Step(
                action=_data_or_none(action),
                observation=_data_or_none(observation),
                reward=reward,
                info=_plain_parts(info),
                calls=calls,
            )
        else:
            step = Step(action=_data_or_none(action), reward=reward, calls=calls)
        self._steps.append(step)

    def trajectory(self) -> Trajectory:
        """The episode so far."""
        return Trajectory(tuple(self._steps), state_in(self._last), self._truncated)


def tool_calls_of(
    action: object, info: Mapping[str, object], names: Mapping[int, str]
) -> tuple[ToolCall, ...]:
    """The tools that a step called; what is not written as this room says is no call."""
    try:
        if TOOL_CALLS in info:
            return tuple(calls_in(info[TOOL_CALLS]))
        for key in TOOL_NAMES:
            name = info.get(key)
            if isinstance(name, str) and name:
                return (_from_info(name, info),)
        if isinstance(action, str):
            return _from_text(action)
        if names:
            name = names.get(int(cast("int", action)))
            return () if name is None else (ToolCall(name),)
    except (TypeError, ValueError, RecursionError):
        return ()
    return ()


def action_names(metadata: Mapping[str, object], first: int = 0) -> dict[int, str]:
    """The names of a Discrete space's actions, where the environment's metadata tells them."""
    given = metadata.get(ACTION_NAMES)
    if isinstance(given, Mapping):
        pairs = cast("Mapping[object, object]", given)
        return {int(str(key)): str(name) for key, name in pairs.items() if str(key).isdigit()}
    if isinstance(given, list | tuple):
        return {first + place: str(name) for place, name in enumerate(cast("list[object]", given))}
    return {}


def state_in(info: Mapping[str, object]) -> dict[str, Value]:
    """The state that an info tells."""
    state = info.get(STATE)
    if isinstance(state, Mapping):
        return _plain_parts(cast("Mapping[str, object]", state))
    return _plain_parts({key: info[key] for key in info if key not in _OURS})


def _from_info(name: str, info: Mapping[str, object]) -> ToolCall:
    arguments = info.get(TOOL_ARGUMENTS)
    return ToolCall(
        name,
        data(cast("object", arguments)) if isinstance(arguments, Mapping) else {},
        _data_or_none(info.get(TOOL_RESULT)),
    )


def _from_text(action: str) -> tuple[ToolCall, ...]:
    if not action.lstrip().startswith("{") or len(action) > _LONGEST_ACTION:
        return ()
    said: object = json.loads(action)
    if not isinstance(said, Mapping):
        return ()
    entry = cast("Mapping[str, object]", said)
    if TOOL_CALLS in entry:
        return tuple(calls_in(entry[TOOL_CALLS]))
    return (call_of(entry),)


def _plain_parts(parts: Mapping[str, object]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for key, value in parts.items():
        try:
            found[str(key)] = data(value)
        except TypeError:
            continue
    return found


def _data_or_none(value: object) -> Value:
    try:
        return data(value)
    except TypeError:
        return None
