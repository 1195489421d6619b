"""Verifiers as records describe them, and the judges that are made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from rlcore import ConfigurationError

from rleaas.verify import logic as read
from rleaas.verify.composite import Component, Composite
from rleaas.verify.function import read_function
from rleaas.verify.judge import Judge
from rleaas.verify.llm_judge import LlmJudge, read_rubric
from rleaas.verify.means import NO_MEANS, FunctionSource, Means
from rleaas.verify.order import read_order
from rleaas.verify.policy import read_policy
from rleaas.verify.rule import read_rule
from rleaas.verify.verdict import FailurePolicy

RULE_BASED = "rule_based"
TRAJECTORY_BASED = "trajectory_based"
LLM_JUDGE = "llm_judge"
COMPOSITE = "composite"
PYTHON = "python"
BUILT = (RULE_BASED, TRAJECTORY_BASED, LLM_JUDGE, COMPOSITE, PYTHON)
"""The types that this engine judges by."""

MOST_COMPONENTS = 100
DEEPEST = 8
"""How deep composites lie in one another."""
_COMPOSITE_KEYS = ("components", "overall_pass_threshold", "explanation_required")
_COMPONENT_KEYS = ("verifier_id", "weight", "floor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What a verifier is, whatever keeps it."""

    type: str
    logic: Mapping[str, object] = field(default_factory=dict[str, object])
    id: str = ""
    name: str = ""
    version: int | None = None
    failure_policy: Mapping[str, object] = field(default_factory=dict[str, object])
    enabled: bool = True

    @property
    def label(self) -> str:
        """How messages name it."""
        return f"verifier {self.name or self.id!r}" if self.name or self.id else self.type

    @property
    def components(self) -> list[tuple[str, float, float]]:
        """Id, weight and floor of each component of a composite.

        Raises:
            ConfigurationError: they are written wrongly.
        """
        if self.type != COMPOSITE:
            return []
        found = read.objects(self.logic, "components", self.label)
        if len(found) > MOST_COMPONENTS:
            raise read.refused(self.label, f"it has more than {MOST_COMPONENTS} components")
        return [self._component(one) for one in found]

    def _component(self, one: Mapping[str, object]) -> tuple[str, float, float]:
        read.require_known(one, _COMPONENT_KEYS, f"{self.label}: components")
        verifier_id = one.get("verifier_id")
        if not isinstance(verifier_id, str) or not verifier_id:
            raise read.refused(self.label, "each component has a verifier_id")
        weight = read.number(one, "weight", 1.0, self.label)
        if not 0 < weight <= 1e6:
            raise read.refused(self.label, f"the weight of {verifier_id!r} is not above 0")
        return verifier_id, weight, read.share(one, "floor", 0.0, self.label)


Find = Callable[[str], Definition]
"""Finds a component by its id, or raises what says that there is none."""


def check(definition: Definition) -> None:
    """Refuse a definition that could not judge; one without any logic may still be completed.

    Raises:
        ExpressionError: a condition cannot be read; a caret shows where.
        ConfigurationError: another part is wrong.
    """
    policy_of(definition)
    if definition.type == COMPOSITE:
        read.require_known(definition.logic, _COMPOSITE_KEYS, definition.label)
        read.share(definition.logic, "overall_pass_threshold", 0.75, definition.label)
        ids = [one for one, _, _ in definition.components]
        if definition.logic and not ids:
            raise _incomplete(definition, "Give it components")
        if definition.id and definition.id in ids:
            raise in_a_circle([definition.id, definition.id])
        repeated = {one for one in ids if ids.count(one) > 1}
        if repeated:
            raise read.refused(definition.label, f"component {min(repeated)!r} is listed twice")
    elif definition.type == LLM_JUDGE:
        rubric = read_rubric(definition.logic, definition.label)
        if definition.logic and not rubric.prompt:
            raise _incomplete(definition, "Give it an evaluation_prompt")
    elif definition.type == PYTHON:
        if definition.logic:
            _source(definition)
    elif definition.type in BUILT:
        # A list of conditions that is empty was meant to have some.
        _single(definition, complete=bool(definition.logic))


def judge_of(definition: Definition, find: Find | None = None, *, means: Means = NO_MEANS) -> Judge:
    """The judge that a definition describes.

    Args:
        definition: what it judges by.
        find: gives the components of composites.
        means: the language model that judges, and what runs Python functions.

    Raises:
        ConfigurationError: it is incomplete, of a type that is not built (`not_available`), or
            contains itself; there is no model to ask (`no_judge_configured`), or no code is run
            here (`code_not_allowed`).
        ExpressionError: a condition cannot be read.
    """
    return _Builder(find, means).judge(definition, [definition.id])


class _Builder:
    def __init__(self, find: Find | None, means: Means) -> None:
        self._find = find
        self._means = means
        self._made = 0

    def judge(self, definition: Definition, path: list[str]) -> Judge:
        self._made += 1
        if self._made > MOST_COMPONENTS:
            raise read.refused(definition.label, f"over {MOST_COMPONENTS} components in all")
        if definition.type == COMPOSITE:
            check(definition)
            return self._composite(definition, path)
        if definition.type == LLM_JUDGE:
            return self._asked(definition)
        if definition.type == PYTHON:
            return self._loaded(definition)
        return _built(definition)

    def _asked(self, definition: Definition) -> Judge:
        if not definition.logic.get("evaluation_prompt"):
            raise _incomplete(definition, "Give it an evaluation_prompt")
        rubric = read_rubric(definition.logic, definition.label)
        if self._means.remote is not None:
            return self._means.remote(definition.id, definition.version)
        return LlmJudge(
            rubric=rubric,
            model=self._means.judge_model(rubric.model, definition.label),
            cache=self._means.cache,
            meter=self._means.meter,
            policy=policy_of(definition),
            verifier=definition.id,
            version=definition.version,
        )

    def _loaded(self, definition: Definition) -> Judge:
        if not definition.logic:
            raise _incomplete(definition, "Give it a source and the name of its function")
        source = _source(definition)
        if self._means.load is None:
            raise ConfigurationError(
                f"{definition.label}: no Python function is run here",
                code="code_not_allowed",
                hint="Call the function's own judge(trajectory), or let a worker judge",
            )
        return self._means.load(source)

    def _composite(self, definition: Definition, path: list[str]) -> Judge:
        if self._find is None:
            raise ConfigurationError(f"{definition.label}: nothing says what its components are")
        if len(path) > DEEPEST:
            raise read.refused(definition.label, f"composites lie more than {DEEPEST} deep")
        made: list[Component] = []
        skipped: list[str] = []
        for verifier_id, weight, floor in definition.components:
            if verifier_id in path:
                raise in_a_circle([*path, verifier_id])
            component = self._find(verifier_id)
            if not component.enabled:
                skipped.append(verifier_id)
                continue
            judge = self.judge(component, [*path, verifier_id])
            made.append(Component(verifier_id, judge, weight, floor))
        if not made:
            raise ConfigurationError(
                f"{definition.label} has no component that judges",
                code="verifier_incomplete",
                hint="Enable one of them" if skipped else "Give it components",
            )
        return Composite(
            tuple(made),
            read.share(definition.logic, "overall_pass_threshold", 0.75, definition.label),
            tuple(skipped),
            policy_of(definition),
            definition.id,
            definition.version,
        )


def _built(definition: Definition) -> Judge:
    if definition.type in BUILT:
        return _single(definition, complete=True)
    raise ConfigurationError(
        f"{definition.label}: {definition.type} verifiers are not built yet",
        code="not_available",
        hint=f"There are {', '.join(BUILT)}",
    )


def _single(definition: Definition, *, complete: bool = False) -> Judge:
    make = read_rule if definition.type == RULE_BASED else read_order
    made = make(
        definition.logic,
        policy_of(definition),
        where=definition.label,
        verifier=definition.id,
        version=definition.version,
    )
    if complete and not _says_something(definition):
        raise _incomplete(
            definition,
            "Give it conditions"
            if definition.type == RULE_BASED
            else "Give it required_actions, forbidden_actions or max_allowed_steps",
        )
    return made


def _source(definition: Definition) -> FunctionSource:
    return read_function(
        definition.logic,
        policy_of(definition),
        where=definition.label,
        verifier=definition.id,
        version=definition.version,
    )


def _incomplete(definition: Definition, hint: str) -> ConfigurationError:
    return ConfigurationError(
        f"{definition.label} has nothing that it judges by", code="verifier_incomplete", hint=hint
    )


def policy_of(definition: Definition) -> FailurePolicy:
    """What follows when it fails an episode.

    Raises:
        ConfigurationError: it is written wrongly.
    """
    return read_policy(definition.failure_policy, definition.label)


def _says_something(definition: Definition) -> bool:
    if definition.type == RULE_BASED:
        return bool(definition.logic.get("conditions"))
    keys = ("required_actions", "ordering_constraints", "forbidden_actions", "max_allowed_steps")
    return any(definition.logic.get(key) for key in keys)


def in_a_circle(path: list[str]) -> ConfigurationError:
    """The refusal of a verifier that would judge by itself."""
    return ConfigurationError(
        f"verifier {path[0]!r} would judge by itself: {' -> '.join(path)}",
        code="verifier_cycle",
        hint="Take one of these out of the other's components",
    )


def definition_of(record: Mapping[str, object]) -> Definition:
    """A definition out of its JSON (see `to_json`), or out of a verifier's record.

    Raises:
        ConfigurationError: it is none.
    """
    kind, logic, policy = (record.get(key) for key in ("type", "logic", "failure_policy"))
    if not isinstance(kind, str):
        raise ConfigurationError(f"a verifier has a type, not {kind!r}", code="invalid_verifier")
    version = record.get("version")
    return Definition(
        type=kind,
        logic=_object(logic, "logic"),
        id=str(record.get("id") or ""),
        name=str(record.get("name") or ""),
        version=version if isinstance(version, int) else None,
        failure_policy=_object(policy, "failure_policy"),
        enabled=record.get("enabled") is not False and record.get("status") != "disabled",
    )


def to_json(definition: Definition) -> dict[str, object]:
    """The definition as JSON."""
    return {
        "type": definition.type,
        "logic": dict(definition.logic),
        "id": definition.id,
        "name": definition.name,
        "version": definition.version,
        "failure_policy": dict(definition.failure_policy),
        "enabled": definition.enabled,
    }


def _object(value: object, what: str) -> Mapping[str, object]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"a verifier's {what} is an object", code="invalid_verifier")
    return cast("Mapping[str, object]", value)
