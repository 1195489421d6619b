"""Verifiers that are Python functions: `@verifier` above a function of a trajectory."""

from __future__ import annotations

import ast
import copy
import inspect
import math
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast, overload

from rlcore import ConfigurationError, GraderError

from rleaas.verify import logic as read
from rleaas.verify.auditing import PROBED, REPEATS, AuditReport, audit
from rleaas.verify.means import FunctionSource
from rleaas.verify.outcome import Ungraded, judged
from rleaas.verify.policy import read_policy
from rleaas.verify.trajectory import Trajectory
from rleaas.verify.verdict import DEFAULT_POLICY, Check, FailurePolicy, Verdict
from rleaas.verify.work import Work

KEYS = ("source", "function", "threshold", "compliance_tags", "explanation_required")
LONGEST_SOURCE = 200_000

# What a function of somebody's gives back is looked at where it arrives.
Function = Callable[[Trajectory], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionVerifier:
    """Judges by what a function says of the trajectory: a bool, a score from 0 to 1, or a verdict.

    Called, it does what the function does. The function gets a trajectory of its own, so what it
    changes nobody else sees. When it fails, or says something else, there is no verdict.

    Attributes:
        function: the function.
        name: what it is called.
        weight: its share among others.
        threshold: the score that passes.
        policy: what follows when an episode fails.
        verifier: its id; the name, unless it is registered.
        version: its version, where it is registered.
    """

    function: Function
    name: str
    weight: float = 1.0
    threshold: float = 0.5
    policy: FailurePolicy = DEFAULT_POLICY
    verifier: str = ""
    version: int | None = None

    @property
    def looks_at_observations(self) -> bool:
        """It may look at anything."""
        return True

    def __call__(self, trajectory: Trajectory) -> Any:  # whatever the function gives
        """Call the function as it is."""
        return self.function(trajectory)

    def judge(self, trajectory: Trajectory, work: Work | None = None) -> Verdict:
        """Say what the function says of the episode.

        Raises:
            GraderError: it failed, or said something that is no verdict.
        """
        try:
            said: object = self.function(copy.deepcopy(trajectory))
        except GraderError:
            raise  # what stands around the function has said already why it could not
        except Exception as error:
            raise self._failed("exception", told(error)) from error
        return self._verdict(said)

    def test(
        self,
        state: Mapping[str, object] | None = None,
        trajectory: Sequence[Mapping[str, object]] | Trajectory = (),
    ) -> Verdict | Ungraded:
        """Judge an episode: the state at its end, and its steps such as `{"tool": "wire"}`.

        An answer that is no verdict is told as `Ungraded`, not raised.

        Raises:
            ConfigurationError: a step makes no sense, or a trajectory has a state beside its own.
        """
        if not isinstance(trajectory, Trajectory):
            return judged(self, Trajectory.of(trajectory, state))
        if state is not None:
            raise ConfigurationError(
                "a trajectory has a state of its own", code="invalid_trajectory", hint="Give one"
            )
        return judged(self, trajectory)

    def audit(
        self,
        good: Iterable[Trajectory],
        bad: Iterable[Trajectory],
        *,
        repeats: int = REPEATS,
        probed: int = PROBED,
        allow_empty: bool = False,
        most_wrong: float = 0.0,
    ) -> AuditReport:
        """Test it with episodes whose worth is known, and with tricks on them; see `verify.audit`.

        Raises:
            ConfigurationError: there is no good or no bad episode, or more than a thousand.
        """
        return audit(
            self,
            good=good,
            bad=bad,
            repeats=repeats,
            probed=probed,
            allow_empty=allow_empty,
            most_wrong=most_wrong,
        )

    def source(self) -> dict[str, object]:
        """What a server needs to register it, as `logic`: the source of the file's function.

        Only the function itself is sent: what it needs of its module it imports inside.

        Raises:
            ConfigurationError: its source is not there, as for one typed at a prompt.
        """
        try:
            text = inspect.getsource(self.function)
        except (OSError, TypeError) as error:
            raise ConfigurationError(
                f"the source of verifier {self.name!r} cannot be found: {error}",
                code="verifier_source_missing",
                hint="Write it in a file or a notebook's cell",
            ) from error
        plain = _without_decorators(inspect.cleandoc("\n" + text))
        return {"source": plain, "function": self.function.__name__, "threshold": self.threshold}

    def _verdict(self, said: object) -> Verdict:
        if isinstance(said, Verdict):
            if not math.isfinite(said.score) or not 0 <= said.score <= 1:
                raise self._failed("out_of_scale", f"its verdict's score is {said.score!r}")
            if not math.isfinite(said.reward):
                raise self._failed("invalid_answer", f"its verdict's reward is {said.reward!r}")
            return replace(
                said, policy=self.policy, verifier=self.verifier or self.name, version=self.version
            )
        plain = _number(said)
        if plain is None:
            raise self._failed(
                "invalid_answer",
                f"it gave {type(said).__name__}, not a bool, a number from 0 to 1 or a Verdict",
            )
        if not 0 <= plain <= 1:
            raise self._failed("out_of_scale", f"it gave {plain!r}, not a number from 0 to 1")
        passed = plain >= self.threshold
        return Verdict(
            plain,
            passed,
            plain + (0.0 if passed else self.policy.penalty),
            (Check(self.name, passed, None if isinstance(said, bool) else f"it gave {plain:g}"),),
            self.policy,
            f"{self.name} {'holds' if passed else 'does not hold'}",
            self.verifier or self.name,
            self.version,
        )

    def _failed(self, reason: str, detail: str) -> GraderError:
        return GraderError(
            self.verifier or self.name,
            reason,
            detail,
            hint="Mend the function; the episode has no score",
        )


@overload
def verifier(function: Function) -> FunctionVerifier: ...


@overload
def verifier(
    *,
    name: str | None = None,
    weight: float = 1.0,
    threshold: float = 0.5,
    hard_fail: bool = False,
    penalty: float = 0.0,
    log_failure: bool = True,
) -> Callable[[Function], FunctionVerifier]: ...


def verifier(
    function: Function | None = None,
    *,
    name: str | None = None,
    weight: float = 1.0,
    threshold: float = 0.5,
    hard_fail: bool = False,
    penalty: float = 0.0,
    log_failure: bool = True,
) -> FunctionVerifier | Callable[[Function], FunctionVerifier]:
    """Make a function of a trajectory a verifier.

        @rleaas.verifier(name="checked first")
        def checked(trajectory):
            return "run_aml_check" in trajectory.tool_calls

    Args:
        function: the function; it returns a bool, a score from 0 to 1, or a `Verdict`.
        name: what it is called; the function's name.
        weight: its share among others.
        threshold: the score that passes.
        hard_fail: whether an episode that fails it is no success, whatever others say.
        penalty: added to the reward of an episode that fails it: at most 0.
        log_failure: whether failures are told.

    Raises:
        ConfigurationError: the weight is not above 0, the threshold not from 0 to 1, the penalty
            above 0, or the name empty or longer than 200 characters.
    """
    if not (math.isfinite(weight) and weight > 0):
        raise ConfigurationError(f"the weight of a verifier is above 0, not {weight!r}")
    if not 0 <= threshold <= 1:
        raise ConfigurationError(f"the threshold of a verifier is from 0 to 1, not {threshold!r}")
    if name is not None and not (isinstance(cast("object", name), str) and 0 < len(name) <= 200):
        raise ConfigurationError(
            f"the name of a verifier is text of 1 to 200 characters, not {name!r}"[:300],
            code="invalid_verifier",
        )
    said = {"hard_fail": hard_fail, "penalty": penalty, "log_failure": log_failure}
    policy = read_policy(said, f"verifier {name!r}" if name else "verifier")

    def made(function: Function) -> FunctionVerifier:
        return FunctionVerifier(
            function=function,
            name=name or function.__name__,
            weight=weight,
            threshold=threshold,
            policy=policy,
        )

    return made if function is None else made(function)


def read_function(
    logic: Mapping[str, object],
    policy: FailurePolicy,
    *,
    where: str,
    verifier: str,
    version: int | None,
) -> FunctionSource:
    """The source that a record describes; nothing of it is run.

    Raises:
        ConfigurationError: it is no Python, or has no such function.
    """
    read.require_known(logic, KEYS, where)
    read.texts(logic, "compliance_tags", where)
    source, function = logic.get("source"), logic.get("function")
    if not isinstance(source, str) or not isinstance(function, str) or not source or not function:
        raise read.refused(
            where,
            "a python verifier has a 'source' and the name of its 'function'",
            "fn.source() of a function under @rleaas.verifier has both",
        )
    if len(source) > LONGEST_SOURCE:
        raise read.refused(where, f"its source has {len(source)} characters, over {LONGEST_SOURCE}")
    if function not in _functions(source, where):
        raise read.refused(where, f"its source has no function {function!r} at the top")
    return FunctionSource(
        source=source,
        function=function,
        threshold=read.share(logic, "threshold", 0.5, where),
        policy=policy,
        verifier=verifier,
        version=version,
    )


def told(error: BaseException) -> str:
    """An exception with the last place that it passed through."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" (line {frames[-1].lineno} of {frames[-1].name})" if frames else ""
    return f"{type(error).__name__}: {str(error)[:500]}{place}"


def _functions(source: str, where: str) -> list[str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise read.refused(where, f"its source is no Python: {error}") from error
    return [one.name for one in tree.body if isinstance(one, ast.FunctionDef)]


def _without_decorators(text: str) -> str:
    tree = ast.parse(text)
    for one in tree.body:
        if isinstance(one, ast.FunctionDef):
            one.decorator_list = []
    return ast.unparse(tree) + "\n"


def _number(said: object) -> float | None:
    """A bool or a number, also one of numpy's, as a float."""
    if not isinstance(said, bool | int | float):
        convert = getattr(said, "item", None)
        said = convert() if callable(convert) and getattr(said, "size", 0) == 1 else None
    return float(said) if isinstance(said, bool | int | float) else None
