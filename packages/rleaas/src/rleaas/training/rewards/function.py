"""Reward functions that run: an expression, or a function of somebody's Python source."""

from __future__ import annotations

import inspect
import linecache
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import TracebackType
from typing import Any, Protocol, cast

from rlcore import ExpressionError, RLEaaSError

from rleaas.training.rewards.call_limit import CallLimit, CallOverdue
from rleaas.training.rewards.own_copy import own_copy
from rleaas.training.rewards.spec import VARIABLES, RewardSpec
from rleaas.verify import Expression
from rleaas.verify.values import data

CALL_SECONDS = 1.0
"""How long one call may take."""
IMPORT_SECONDS = 60.0
"""How long the source may take to be run once, with what it imports."""

# Observations, actions and infos are whatever the environment's spaces say.
Value = Any


@dataclass(slots=True)
class Moment:
    """One step, as reward functions are told of it; `step` and `episode` count from 1."""

    reward: float
    observation: Value
    action: Value
    info: Mapping[str, Value]
    terminated: bool
    truncated: bool
    step: int
    episode: int
    seed: int | None


assert tuple(field.name for field in fields(Moment)) == VARIABLES


class RewardFunction(Protocol):
    """Says what a step is worth."""

    def __call__(self, moment: Moment) -> Value:
        """The reward, as the function gave it.

        Raises:
            RLEaaSError: it failed; code `reward_failed`.
        """
        ...


def reward_function(spec: RewardSpec) -> RewardFunction:
    """The function that a checked request describes; Python source is run now.

    Raises:
        RLEaaSError: the source failed.
    """
    if spec.text is None:
        raise failed(spec, "its source did not come along", None)
    return PythonReward(spec, CALL_SECONDS) if spec.is_code else ExpressionReward(spec)


class ExpressionReward:
    """A reward by the safe evaluator."""

    def __init__(self, spec: RewardSpec) -> None:
        self._spec = spec
        self._expression = Expression(spec.text or "")
        self._names = tuple(self._expression.names)

    def __call__(self, moment: Moment) -> Value:
        """Work the expression out; arrays are lists in it."""
        try:
            names = {name: data(getattr(moment, name)) for name in self._names}
        except TypeError as error:
            raise failed(self._spec, f"it cannot look at this step: {error}", moment) from error
        try:
            return self._expression.evaluate(names)
        except ExpressionError as error:
            raise failed(self._spec, error.message, moment) from error


class PythonReward:
    """A reward by a function of the job's own source, called with what its parameters name.

    The source is run once for each session, so sessions do not share what it keeps in its module.
    """

    def __init__(self, spec: RewardSpec, call_seconds: float) -> None:
        self._spec = spec
        self._limit = CallLimit(call_seconds)
        source = spec.text or ""
        # So that tracebacks show lines of a file that is not on this disk.
        linecache.cache[spec.file_name] = (
            len(source),
            None,
            source.splitlines(keepends=True),
            spec.file_name,
        )
        self._function = self._load(source)
        taken = inspect.signature(self._function).parameters.values()
        takes_all = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken)
        self._names = (
            VARIABLES if takes_all else tuple(one.name for one in taken if one.name in VARIABLES)
        )

    def _load(self, source: str) -> Callable[..., Value]:
        namespace: dict[str, Value] = {"__name__": "reward_fn", "__file__": self._spec.file_name}
        code = compile(source, self._spec.file_name, "exec")
        try:
            # The job's author wrote it, and the operator allowed code in workers.
            CallLimit(IMPORT_SECONDS).run(lambda: exec(code, namespace))
        except CallOverdue as error:
            raise failed(
                self._spec, f"it did not load within {IMPORT_SECONDS:g} s", None
            ) from error
        except KeyboardInterrupt:
            raise  # the job's own stop
        except BaseException as error:
            raise failed(self._spec, _told(error, self._spec), None) from error
        found = namespace.get(self._spec.function or "")
        if not callable(found):
            raise failed(self._spec, f"{self._spec.function!r} is no function any more", None)
        return cast("Callable[..., Value]", found)

    def __call__(self, moment: Moment) -> Value:
        """Call the function with copies of what it may change, for so long at most."""
        arguments = {name: own_copy(getattr(moment, name)) for name in self._names}
        try:
            return self._limit.run(lambda: self._function(**arguments))
        except CallOverdue as error:
            where = _line(error.__traceback__, self._spec)
            told = f"it did not return within {self._limit.seconds:g} s{where}"
            raise failed(self._spec, told, moment) from error
        except KeyboardInterrupt:
            raise  # the job's own stop
        except BaseException as error:
            # An exit is no end of the job that its author could have meant.
            raise failed(self._spec, _told(error, self._spec), moment) from error


def failed(spec: RewardSpec, what: str, moment: Moment | None) -> RLEaaSError:
    """The failure of a reward function, with the moment in which it failed."""
    where = ""
    if moment is not None:
        where = f" in episode {moment.episode} with seed {moment.seed}, step {moment.step}"
    return RLEaaSError(
        f"the {spec.label} failed{where}: {what}",
        code="reward_failed",
        hint="Mend it, and start the job again or from its last checkpoint",
    )


def _told(error: BaseException, spec: RewardSpec) -> str:
    return f"{type(error).__name__}: {error}{_line(error.__traceback__, spec)}"


def _line(trace: TracebackType | None, spec: RewardSpec) -> str:
    """The last line of the author's own that was running."""
    lines = [
        frame.lineno for frame in traceback.extract_tb(trace) if frame.filename == spec.file_name
    ]
    return f" ({spec.file_name}, line {lines[-1]})" if lines else ""
