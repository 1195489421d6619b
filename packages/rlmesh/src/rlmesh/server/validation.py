"""What a server does about values that are out of range: report, refuse, or let them pass."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final, cast

from rlcore import InvalidActionError, InvalidObservationError

from rlmesh.codec.ranges import RangeCheck, RangeFault, compile_range_check
from rlmesh.protocol.messages import Leaves, Request, ResetAnswer, StepAnswer, Timing
from rlmesh.server.stage import bad_action, bad_observation
from rlmesh.specs import EnvContract

POLICY_VARIABLE: Final = "RLMESH_VALIDATION_POLICY"
WARNING_KEY: Final = "rlmesh.conformance.warning"
"""Where an info holds what was out of range: maps with `kind`, `path` and `detail`."""

Warnings = list[dict[str, str]]
Info = Mapping[str, object] | None
Step = Callable[[Request, Timing], StepAnswer]
Reset = Callable[[Request, Timing], ResetAnswer]


class ValidationPolicy(StrEnum):
    """What happens to a value that is out of range.

    Attributes:
        WARN: it is delivered, and the info says so, once for each place in a session.
        STRICT: it is refused.
        OFF: nobody looks.
    """

    WARN = "warn"
    STRICT = "strict"
    OFF = "off"


def policy_named(name: str | None) -> ValidationPolicy:
    """Return the policy of that name; `WARN` when it is none."""
    try:
        return ValidationPolicy((name or "").strip().lower())
    except ValueError:
        return ValidationPolicy.WARN


class Checks:
    """What can be out of range in an environment's values, compiled once for all sessions.

    Attributes:
        policy: what happens to it.
        lanes: how many environments a message is about that names none.
        action: looks at actions.
        observation: looks at observations of all environments together.
        each: looks at those of one, where what is wrong with it must not cost the others theirs.
    """

    def __init__(self, contract: EnvContract, policy: ValidationPolicy) -> None:
        self.policy = policy
        self.lanes = contract.num_envs
        looks = policy is not ValidationPolicy.OFF
        self.action: RangeCheck | None = (
            compile_range_check(contract.action_space) if looks else None
        )
        self.observation: RangeCheck | None = (
            compile_range_check(contract.observation_space) if looks else None
        )
        self.each: RangeCheck | None = None

    def of_several(self, count: int) -> Checks:
        """Return them for a session with so many environments."""
        several = copy.copy(self)
        several.lanes = count
        if several.policy is ValidationPolicy.STRICT:
            several.each, several.observation = self.observation, None
        return several


class Validation:
    """Checks the encoded values of one session, and remembers what it has said."""

    def __init__(self, checks: Checks) -> None:
        self._action = checks.action
        self._observation = checks.observation
        self._lanes = checks.lanes
        self._strict = checks.policy is ValidationPolicy.STRICT
        self._told: set[tuple[str, str]] = set()

    def of_steps(self, step: Step) -> Step:
        """Return a step that checks its action and its observation; itself where none can be wrong.

        It raises `Failed` for what a strict server refuses: the action before the environment is
        stepped, the observation after.
        """
        if self._action is None:
            return step if self._observation is None else self._observing(step)
        if self._strict:
            return self._refusing(step if self._observation is None else self._observing(step))
        return self._acting(step if self._observation is None else self._observing(step))

    def of_resets(self, reset: Reset) -> Reset:
        """Return a reset that checks its observation; itself where that cannot be wrong."""
        check = self._observation
        if check is None:
            return reset

        def checked(request: Request, timing: Timing) -> ResetAnswer:
            answer = reset(request, timing)
            faults = check(answer.leaves, len(request.lanes) or self._lanes)
            if faults:
                answer.info = self._observed("reset", faults, answer.info)
            return answer

        return checked

    def _observing(self, step: Step) -> Step:
        check, all_lanes = self._observation, self._lanes
        assert check is not None  # the caller has looked

        def checked(request: Request, timing: Timing) -> StepAnswer:
            answer = step(request, timing)
            faults = check(answer.leaves, len(request.lanes) or all_lanes)
            if faults:
                answer.info = self._observed("step", faults, answer.info)
            return answer

        return checked

    def _acting(self, step: Step) -> Step:
        def checked(request: Request, timing: Timing) -> StepAnswer:
            answer = step(request, timing)
            # After the step: until then, nobody has seen that the action has the right form.
            faults = self._faults(request)
            if faults:
                answer.info = self._with("action", faults, answer.info)
            return answer

        return checked

    def _refusing(self, step: Step) -> Step:
        def checked(request: Request, timing: Timing) -> StepAnswer:
            for fault in self._faults(request):
                text = f"the action at {fault.path} {fault.detail}"
                raise bad_action(InvalidActionError(text, path=fault.path))
            return step(request, timing)

        return checked

    def _faults(self, request: Request) -> Sequence[RangeFault]:
        leaves: Leaves | None = request.action
        if leaves is None or self._action is None:
            return ()
        return self._action(leaves, len(request.lanes) or self._lanes)

    def _observed(self, operation: str, faults: Sequence[RangeFault], info: Info) -> Info:
        if not self._strict:
            return self._with("observation", faults, info)
        error = refused_observation(faults[0])
        raise bad_observation(operation, error) from error

    def _with(self, kind: str, faults: Sequence[RangeFault], info: Info) -> Info:
        new: Warnings = []
        for fault in faults:
            if (kind, fault.path) not in self._told:
                self._told.add((kind, fault.path))
                new.append({"kind": kind, "path": fault.path, "detail": fault.detail})
        if not new:
            return info
        known = info or {}
        # An environment that is itself a client of another server has warnings of that one.
        before = known.get(WARNING_KEY)
        said = cast("Warnings", before) if isinstance(before, list) else []
        return {**known, WARNING_KEY: [*said, *new]}


def refused_observation(fault: RangeFault) -> InvalidObservationError:
    """Return the error of an observation that a strict server refuses."""
    text = f"the observation at {fault.path} {fault.detail}"
    return InvalidObservationError(text, path=fault.path)
