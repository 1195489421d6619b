"""What happened in an episode, as verifiers see it: plain data in the order of its steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, cast

from rlcore import ConfigurationError

from rleaas.verify.values import Record, Value, data

NAMES = ("trajectory", "state")
"""What a condition finds beside the keys of the state and the last step's arguments."""

_ARGUMENTS = ("arguments", "args", "parameters", "params", "input")
_STEP_KEYS = frozenset(
    (
        *("tool", "tool_name", "action", "observation", "reward", "info", "result", "tool_calls"),
        *_ARGUMENTS,
    )
)
_NOTHING: Mapping[str, Value] = {}


@dataclass(frozen=True, slots=True)
class ToolCall(Record):
    """One call of a tool."""

    name: str
    arguments: Mapping[str, Value] = field(default_factory=dict[str, Value])
    result: Value = None

    def parts(self) -> Sequence[Value]:
        """All that it holds."""
        return self.name, self.arguments, self.result

    def to_json(self) -> dict[str, Value]:
        """The call as JSON."""
        found: dict[str, Value] = {"tool": self.name, "arguments": dict(self.arguments)}
        if self.result is not None:
            found["result"] = self.result
        return found

    fields: ClassVar = {
        "name": lambda call: call.name,
        "arguments": lambda call: call.arguments,
        "result": lambda call: call.result,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Record):
    """One step: what was done, and what came of it."""

    action: Value = None
    observation: Value = None
    reward: float = 0.0
    info: Mapping[str, Value] = field(default_factory=dict[str, Value])
    calls: tuple[ToolCall, ...] = ()

    def parts(self) -> Sequence[Value]:
        """All that it holds."""
        return self.action, self.observation, self.reward, self.info, self.calls

    def to_json(self) -> dict[str, Value]:
        """The step as JSON; parts that are empty are left out."""
        told: dict[str, Value] = {
            "action": self.action,
            "observation": self.observation,
            "info": dict(self.info) or None,
            "tool_calls": [call.to_json() for call in self.calls] or None,
        }
        given = {key: value for key, value in told.items() if value is not None}
        return {"reward": self.reward, **given}

    @property
    def tool(self) -> str | None:
        """The first tool that was called in it."""
        return self.calls[0].name if self.calls else None

    @property
    def arguments(self) -> Mapping[str, Value]:
        """The arguments of the last call in it."""
        return self.calls[-1].arguments if self.calls else _NOTHING

    fields: ClassVar = {
        "action": lambda step: step.action,
        "observation": lambda step: step.observation,
        "reward": lambda step: step.reward,
        "info": lambda step: step.info,
        "tool": lambda step: step.tool,
        "arguments": lambda step: step.arguments,
        "result": lambda step: step.calls[-1].result if step.calls else None,
        "tool_calls": lambda step: tuple(call.name for call in step.calls),
    }


@dataclass(frozen=True)
class Trajectory(Record):
    """The steps of an episode and the state at its end.

    Attributes:
        steps: in their order.
        state: what is known at the end; its keys are variables of conditions.
        truncated: whether a limit ended it.
    """

    steps: tuple[Step, ...] = ()
    state: Mapping[str, Value] = field(default_factory=dict[str, Value])
    truncated: bool = False

    @classmethod
    def of(
        cls,
        steps: Sequence[Mapping[str, object]],
        state: Mapping[str, object] | None = None,
        *,
        truncated: bool = False,
    ) -> Trajectory:
        """A trajectory out of JSON: steps such as `{"tool": "wire", "arguments": {...}}`.

        The arguments may also be called `args`, `parameters`, `params` or `input`; where there are
        none of these, the step's other keys are its arguments. Several calls of one step are a
        list `tool_calls` of names or of such objects.

        Raises:
            ConfigurationError: a step has a part that is no plain data.
        """
        made: list[Step] = []
        for number, step in enumerate(steps, 1):
            try:
                made.append(_step(step))
            except (TypeError, ValueError) as error:
                raise ConfigurationError(
                    f"step {number} of the trajectory cannot be judged: {error}",
                    code="invalid_trajectory",
                ) from error
        try:
            final = data(state or {})
        except TypeError as error:
            raise ConfigurationError(
                f"the state cannot be judged: {error}", code="invalid_trajectory"
            ) from error
        return cls(tuple(made), final, truncated)

    def to_json(self) -> dict[str, Value]:
        """The trajectory as JSON, which `of` reads again; parts that are empty are left out."""
        return {
            "steps": [step.to_json() for step in self.steps],
            "state": dict(self.state),
            "truncated": self.truncated,
        }

    def parts(self) -> Sequence[Value]:
        """All that it holds."""
        return self.steps, self.state, self.truncated

    @cached_property
    def calls(self) -> tuple[ToolCall, ...]:
        """What was called, in order."""
        return tuple(call for step in self.steps for call in step.calls)

    @cached_property
    def actions(self) -> tuple[Value, ...]:
        """The action of each step."""
        return tuple(step.action for step in self.steps)

    @cached_property
    def observations(self) -> tuple[Value, ...]:
        """The observation of each step, where they were kept."""
        return tuple(step.observation for step in self.steps)

    @cached_property
    def tool_calls(self) -> tuple[str, ...]:
        """The names of the tools that were called, in order."""
        return tuple(call.name for call in self.calls)

    @cached_property
    def rewards(self) -> tuple[float, ...]:
        """The reward of each step."""
        return tuple(step.reward for step in self.steps)

    @cached_property
    def total_reward(self) -> float:
        """The sum of the rewards."""
        return sum(self.rewards)

    @property
    def length(self) -> int:
        """How many steps it has."""
        return len(self.steps)

    @cached_property
    def names(self) -> Mapping[str, Value]:
        """The variables of a condition: `trajectory`, `state`, and bare names.

        A bare name is a key of the state, else one of the last step's arguments.
        """
        arguments = self.steps[-1].arguments if self.steps else _NOTHING
        return {**arguments, **self.state, "trajectory": self, "state": self.state}

    fields: ClassVar = {
        "steps": lambda whole: whole.steps,
        "length": lambda whole: len(whole.steps),
        "tool_calls": lambda whole: whole.tool_calls,
        "calls": lambda whole: whole.calls,
        "rewards": lambda whole: whole.rewards,
        "total_reward": lambda whole: whole.total_reward,
        "actions": lambda whole: whole.actions,
        "observations": lambda whole: whole.observations,
        "state": lambda whole: whole.state,
        "truncated": lambda whole: whole.truncated,
    }


def calls_in(value: object) -> Iterator[ToolCall]:
    """The calls of a list `tool_calls`: names, or objects with a name and arguments.

    Raises:
        TypeError: an entry is neither.
    """
    if not isinstance(value, list | tuple):
        raise TypeError(f"tool_calls is a list, not {type(value).__name__}")
    for entry in cast("Sequence[object]", value):
        if isinstance(entry, str):
            yield ToolCall(entry)
        elif isinstance(entry, Mapping):
            yield call_of(cast("Mapping[str, object]", entry))
        else:
            raise TypeError(f"a tool call is a name or an object, not {type(entry).__name__}")


def call_of(entry: Mapping[str, object]) -> ToolCall:
    """A call out of `{"tool": ..., "arguments": {...}, "result": ...}`.

    Raises:
        TypeError: it has no name, or its arguments are no object.
    """
    name = entry.get("tool", entry.get("tool_name", entry.get("name")))
    if not isinstance(name, str) or not name:
        raise TypeError("a tool call has its tool's name as 'tool' or 'name'")
    for key in _ARGUMENTS:
        if key in entry:
            arguments = entry[key]
            if arguments is not None and not isinstance(arguments, Mapping):
                raise TypeError(f"the {key} of a call of {name!r} are no object")
            break
    else:
        arguments = {key: entry[key] for key in entry if key not in _STEP_KEYS | {"name"}}
    plain = data(cast("Mapping[str, object]", arguments or {}))
    return ToolCall(name, plain, data(entry.get("result")))


def _step(step: Mapping[str, object]) -> Step:
    reward = step.get("reward", 0.0)
    if isinstance(reward, bool) or not isinstance(reward, int | float):
        raise TypeError("its reward is no number")
    info = step.get("info")
    if info is not None and not isinstance(info, Mapping):
        raise TypeError("its info is no object")
    if "tool_calls" in step:
        calls = tuple(calls_in(step["tool_calls"]))
    elif step.get("tool", step.get("tool_name")) is not None:
        calls = (call_of(step),)
    else:
        calls = ()
    return Step(
        action=data(step.get("action")),
        observation=data(step.get("observation")),
        reward=float(reward),
        info=data(cast("Mapping[str, object]", info or {})),
        calls=calls,
    )
