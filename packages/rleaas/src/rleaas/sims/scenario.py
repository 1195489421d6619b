"""A task of a world: how it starts, what it allows, when it succeeded, and how it is solved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rleaas.sims.state import Json, State

TIERS = (1, 2, 3, 4)
TRAINING: Split = "training"
EVALUATION: Split = "evaluation"
Split = Literal["training", "evaluation"]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a reference or of a bad solution.

    Attributes:
        tool: its name.
        arguments: text that begins with `$` is the case's value of that key when it is called.
            None are those that the tool suggests.
    """

    tool: str
    arguments: Mapping[str, Json] | None = None

    def given(self, state: State) -> Mapping[str, Json] | None:
        """The arguments for this state."""
        if self.arguments is None:
            return None
        return {name: _filled(value, state) for name, value in self.arguments.items()}


def calls(*given: str | Call) -> tuple[Call, ...]:
    """Calls in order; a name alone is a call with the suggested arguments."""
    return tuple(Call(one) if isinstance(one, str) else one for one in given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One task.

    Attributes:
        id: such as `finsim_wire_003`.
        vertical: the name of the vertical that it is of.
        title: what it is about, in a line.
        tier: from 1, one clear rule, to 4, systemic stress.
        domain: such as `wire_transfer`.
        tags: what it can be found by.
        prompt: what the agent is asked; `{case[customer_name]}` is filled in.
        setup: what the vertical's `prepare` makes of it: plain data.
        tools: the names of those that may be called.
        max_steps: calls that the agent has.
        success: a verifier's `type` and `logic`, judged over the episode's calls and its state.
        reference: calls that succeed.
        bad: plausible calls that do not.
        split: whether agents may learn from it.
    """

    id: str
    vertical: str
    title: str
    tier: int
    domain: str
    prompt: str
    tools: tuple[str, ...]
    max_steps: int
    success: Mapping[str, Json]
    reference: tuple[Call, ...]
    bad: tuple[Call, ...]
    tags: tuple[str, ...] = ()
    setup: Mapping[str, Json] = field(default_factory=dict[str, Json])
    split: Split = TRAINING


def conditions(*given: str) -> dict[str, Json]:
    """The success criterion that all of these conditions hold at the end."""
    return {"type": "rule_based", "logic": {"conditions": list(given)}}


def _filled(value: Json, state: State) -> Json:
    if isinstance(value, str) and value.startswith("$"):
        return state.case[value[1:]]
    return value
