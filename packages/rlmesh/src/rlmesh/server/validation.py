"""What a server does about values that are out of range: report, refuse, or let them pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from rlcore import InvalidActionError, InvalidObservationError

from rlmesh.codec.ranges import RangeCheck, compile_range_check
from rlmesh.spaces import Space
from rlmesh.values import Buffer

POLICY_VARIABLE: Final = "RLMESH_VALIDATION_POLICY"
WARNING_KEY: Final = "rlmesh.conformance.warning"
"""Where an info holds what was out of range: maps with `kind`, `path` and `detail`."""

Warnings = list[dict[str, str]]


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
    """What can be out of range in an environment's values, compiled once for all sessions."""

    def __init__(self, action: Space, observation: Space, policy: ValidationPolicy) -> None:
        self.policy = policy
        looks = policy is not ValidationPolicy.OFF
        self.action: RangeCheck | None = compile_range_check(action) if looks else None
        self.observation: RangeCheck | None = compile_range_check(observation) if looks else None


class Validation:
    """Checks the values of one session, and remembers what it has said."""

    def __init__(self, checks: Checks) -> None:
        self._action = checks.action
        self._observation = checks.observation
        self._strict = checks.policy is ValidationPolicy.STRICT
        self._told: set[tuple[str, str]] = set()

    def check_action(self, leaves: Sequence[Buffer], lanes: int = 1) -> Warnings:
        """Return what is newly out of range in an encoded action that its codec has read.

        Raises:
            InvalidActionError: something is, and the policy is strict.
        """
        if self._action is None:
            return []
        faults = self._action(leaves, lanes)
        if not faults:
            return []
        if self._strict:
            path, detail = faults[0].path, faults[0].detail
            raise InvalidActionError(f"the action at {path} {detail}", path=path)
        return self._new("action", [(fault.path, fault.detail) for fault in faults])

    def check_observation(self, leaves: Sequence[Buffer], lanes: int = 1) -> Warnings:
        """Return what is newly out of range in an encoded observation.

        Raises:
            InvalidObservationError: something is, and the policy is strict.
        """
        if self._observation is None:
            return []
        faults = self._observation(leaves, lanes)
        if not faults:
            return []
        if self._strict:
            path, detail = faults[0].path, faults[0].detail
            raise InvalidObservationError(f"the observation at {path} {detail}", path=path)
        return self._new("observation", [(fault.path, fault.detail) for fault in faults])

    def _new(self, kind: str, found: Sequence[tuple[str, str]]) -> Warnings:
        warnings: Warnings = []
        for path, detail in found:
            if (kind, path) not in self._told:
                self._told.add((kind, path))
                warnings.append({"kind": kind, "path": path, "detail": detail})
        return warnings


def with_warnings(info: Mapping[str, object] | None, warnings: Warnings) -> Mapping[str, object]:
    """Return an info that also says what was out of range."""
    return {**(info or {}), WARNING_KEY: warnings}
