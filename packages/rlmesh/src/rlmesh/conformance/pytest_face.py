"""The checks as tests of pytest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypedDict

import pytest
from rlcore import ConfigurationError

from rlmesh.conformance.apart import check_apart
from rlmesh.conformance.catalogue import CHECKS
from rlmesh.conformance.run import SEEDS, STEPS, TIMEOUT, check
from rlmesh.conformance.subject import is_address
from rlmesh.conformance.verdicts import Report, Verdict

# Not a fixture of the class: its scope would make the suite's own `make` a class method.
_REPORTS: dict[type, Report | None] = {}


class _Chosen(TypedDict):
    seeds: Sequence[int]
    steps: int
    timeout: float
    skip: Sequence[str]


class EnvConformance:
    """Tests of one environment: subclass it as `Test…`, and name the environment or make it.

    ```python
    from rlmesh.conformance import EnvConformance

    class TestMyEnv(EnvConformance):
        target = "my_package.envs:MyEnv"
    ```

    Each check is one test, `test_conforms[seed_honoured]` for example. The environment is played
    once for all of them.

    An environment that is named (`module:attribute`, a gymnasium id that other processes know) is
    played in a process of its own, so that one which exits or crashes fails its tests and leaves
    the others alone. What only this process can make (`make`, a factory, an instance, an id that
    the tests register) is played in it, and ends the test session if it ends its process.

    Attributes:
        target: what `rlmesh.conformance.check` takes; or override `make`.
        seeds: of the plays.
        steps: of each play.
        timeout: how many seconds one call may take.
        strict: whether what is noted fails as well.
        skip: the names of checks to leave out.
    """

    target: ClassVar[object] = None
    seeds: ClassVar[Sequence[int]] = SEEDS
    steps: ClassVar[int] = STEPS
    timeout: ClassVar[float] = TIMEOUT
    strict: ClassVar[bool] = False
    skip: ClassVar[Sequence[str]] = ()

    def make(self) -> object:
        """Return a new environment; called where there is no `target`.

        Raises:
            ConfigurationError: the class has neither.
        """
        raise ConfigurationError(
            f"{type(self).__name__} names no environment to check",
            hint="Give the class a target, or a make() that returns a new environment.",
        )

    @pytest.fixture
    def conformance_report(self) -> Report:
        """The report about the environment, made by the first test of the class."""
        suite = type(self)
        if suite not in _REPORTS:
            _REPORTS[suite] = None  # until there is one
            _REPORTS[suite] = self._report()
        report = _REPORTS[suite]
        if report is None:
            pytest.skip("the environment could not be had; see the first test of the class")
        return report

    def _report(self) -> Report:
        chosen = _Chosen(seeds=self.seeds, steps=self.steps, timeout=self.timeout, skip=self.skip)
        target = self.make if self.target is None else self.target
        if not isinstance(target, str) or is_address(target):
            return check(target, **chosen)
        try:
            return check_apart(target, **chosen)
        except ConfigurationError:
            # What the test session itself has registered is known to no other process.
            return check(target, **chosen)

    @pytest.mark.parametrize("name", CHECKS)
    def test_conforms(self, name: str, conformance_report: Report) -> None:
        """The environment passes the check."""
        findings = [finding for finding in conformance_report if finding.name == name]
        if not findings:
            why = "left out by `skip`" if name in self.skip else "not about such an environment"
            pytest.skip(f"{name}: {why}")
        finding = findings[0]
        if finding.verdict is Verdict.SKIPPED:
            pytest.skip(str(finding))
        bad = (Verdict.FAILED, Verdict.NOTED) if self.strict else (Verdict.FAILED,)
        assert finding.verdict not in bad, str(finding)
