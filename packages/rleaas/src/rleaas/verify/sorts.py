"""What the parts of a condition are, as far as that can be told before any episode is there."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from rleaas.verify import syntax
from rleaas.verify.functions import FUNCTIONS
from rleaas.verify.syntax import Node
from rleaas.verify.trajectory import Step, ToolCall, Trajectory
from rleaas.verify.values import Fault, Record, kind


@dataclass(frozen=True, slots=True)
class Sort:
    """What a value is.

    Attributes:
        word: what people call it; empty: nobody knows.
        inside: what lies in it, of a list.
        fields: what each of its fields is; None: its fields are not a closed list.
    """

    word: str = ""
    inside: Sort | None = None
    fields: Mapping[str, Sort] | None = field(default=None, hash=False)


UNKNOWN = Sort()
NUMBER = Sort("a number")
TEXT = Sort("text")
BOOLEAN = Sort("true or false")
NONE = Sort("none")
OBJECT = Sort("an object")
TOOL = Sort("the name of a tool")
LIST = Sort("a list", UNKNOWN)
TOOLS = Sort("a list", TOOL)
CALL = Sort("a call", fields={"name": TOOL, "arguments": OBJECT, "result": UNKNOWN})
STEP = Sort(
    "a step",
    fields={
        "action": UNKNOWN,
        "observation": UNKNOWN,
        "reward": NUMBER,
        "info": OBJECT,
        "tool": TOOL,
        "arguments": OBJECT,
        "result": UNKNOWN,
        "tool_calls": TOOLS,
    },
)
TRAJECTORY = Sort(
    "a trajectory",
    fields={
        "steps": Sort("a list", STEP),
        "length": NUMBER,
        "tool_calls": TOOLS,
        "calls": Sort("a list", CALL),
        "rewards": Sort("a list", NUMBER),
        "total_reward": NUMBER,
        "actions": LIST,
        "observations": LIST,
        "state": OBJECT,
        "truncated": BOOLEAN,
    },
)
RECORDS: Mapping[type[Record], Sort] = {Trajectory: TRAJECTORY, Step: STEP, ToolCall: CALL}
"""The sort of each value of ours; its fields are those that expressions may read."""

_NAMES = {"trajectory": TRAJECTORY, "state": OBJECT}
_LITERALS = {sort.word: sort for sort in (NUMBER, TEXT, BOOLEAN, NONE)}


def sort_of(node: Node) -> Sort:
    """What a part is.

    Raises:
        Fault: it can be nothing, as it asks for a field that is not there.
    """
    match node:
        case syntax.Literal():
            return _LITERALS.get(kind(node.value), UNKNOWN)
        case syntax.Name():
            return _NAMES.get(node.name, UNKNOWN)
        case syntax.Field():
            return _field(sort_of(node.of), node)
        case syntax.Item():
            return _item(sort_of(node.of), node)
        case syntax.Slice():
            of = sort_of(node.of)
            return of if of.inside is not None or of is TEXT else UNKNOWN
        case syntax.Items():
            return LIST
        case syntax.Negation() | syntax.Comparison():
            return BOOLEAN
        case syntax.Signed() | syntax.Power():
            return NUMBER
        case _:
            return UNKNOWN


def near(name: str, known: Mapping[str, object]) -> str:
    """The nearest of the names that there are, as a hint."""
    found = difflib.get_close_matches(name[:100], known, n=1, cutoff=0.5)
    return f"Did you mean {found[0]!r}?" if found else f"There are {', '.join(sorted(known))}"


def takes_values_of(function: str) -> bool:
    """Whether a function looks for its second argument in the first."""
    return FUNCTIONS[function].compares and function in ("count", "index")


def _field(of: Sort, node: syntax.Field) -> Sort:
    if of.fields is not None:
        found = of.fields.get(node.name)
        if found is None:
            raise Unknown(f"{of.word} has no {node.name!r}", node, near(node.name, of.fields))
        return found
    if of is UNKNOWN or of is OBJECT:
        return UNKNOWN
    hint = "Say which item, as in [0] or [-1]" if of.inside is not None else None
    raise Unknown(f"{of.word} has no {node.name!r}", node, hint)


def _item(of: Sort, node: syntax.Item) -> Sort:
    if of.fields is not None:
        raise Fault(f"{of.word} has no items", node.position)
    if of.inside is not None:
        if sort_of(node.key) in (TEXT, TOOL):
            raise Fault("the index of a list is a whole number, not text", node.position)
        return of.inside
    if of in (NUMBER, BOOLEAN, NONE):
        raise Fault(f"{of.word} has no items", node.position)
    return UNKNOWN


class Unknown(Fault):
    """A field that is not there; the hint has the nearest one."""

    def __init__(self, reason: str, node: syntax.Field, hint: str | None) -> None:
        super().__init__(reason, node.position)
        self.hint = hint
