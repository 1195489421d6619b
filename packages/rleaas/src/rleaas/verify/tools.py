"""The tools that a verifier names, and whether an environment has them."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from rlcore import ConfigurationError, ExpressionError

from rleaas.verify.definition import RULE_BASED, TRAJECTORY_BASED, Definition, policy_of
from rleaas.verify.order import read_order
from rleaas.verify.rule import read_rule
from rleaas.verify.soundness import require_sound

UNKNOWN_TOOL = "unknown_tool"


@dataclass(frozen=True, slots=True)
class NamedTool:
    """A tool that a verifier names.

    Attributes:
        tool: its name.
        part: in which part of the logic.
        expression: the condition, where it is one.
        position: where in the condition.
    """

    tool: str
    part: str
    expression: str = ""
    position: int | None = None


def tools_named(definition: Definition) -> tuple[NamedTool, ...]:
    """The tools that its conditions compare with what was called, and those of its lists.

    Raises:
        ConfigurationError: a part of its logic is wrong.
    """
    if definition.type == RULE_BASED:
        return tuple(_of_rule(definition))
    if definition.type == TRAJECTORY_BASED:
        return tuple(_of_order(definition))
    return ()


def require_tools(definition: Definition, known: Collection[str], place: str) -> None:
    """Refuse a verifier that names a tool which an environment does not have.

    Args:
        definition: the verifier.
        known: the tools that there are.
        place: how messages name the environment.

    Raises:
        ExpressionError: a condition names it; a caret shows where. Its code is `unknown_tool`.
        ConfigurationError: a list names it (`unknown_tool`).
    """
    for one in tools_named(definition):
        if one.tool in known:
            continue
        said = f"{definition.label}: {one.part}: {place} has no tool {one.tool!r}"
        hint = nearest(one.tool, known)
        if one.position is None:
            raise ConfigurationError(said, code=UNKNOWN_TOOL, hint=hint)
        raise ExpressionError(
            said, expression=one.expression, position=one.position, code=UNKNOWN_TOOL, hint=hint
        )


def nearest(tool: str, known: Collection[str]) -> str:
    """Which tool may have been meant, as a hint."""
    found = difflib.get_close_matches(tool[:200], known, n=1, cutoff=0.5)
    if found:
        return f"Did you mean {found[0]!r}?"
    return f"It has {', '.join(sorted(known)[:30])}" if known else "It has none"


def _of_rule(definition: Definition) -> Iterator[NamedTool]:
    rule = read_rule(
        definition.logic, policy_of(definition), where=definition.label, verifier="", version=None
    )
    for number, condition in enumerate(rule.conditions, 1):
        for one in require_sound(condition.text, condition.node):
            yield NamedTool(one.tool, f"condition {number}", condition.text, one.position)


def _of_order(definition: Definition) -> Iterator[NamedTool]:
    order = read_order(
        definition.logic, policy_of(definition), where=definition.label, verifier="", version=None
    )
    yield from (NamedTool(tool, "required_actions") for tool in order.required)
    yield from (NamedTool(tool, "forbidden_actions") for tool in order.forbidden)
    for pair in order.ordering:
        yield from (NamedTool(tool, "ordering_constraints") for tool in pair)
