"""A vertical: a line of business with its records, tools, tasks and controls."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rleaas.sims.options import COMMON, Option
from rleaas.sims.scenario import Scenario
from rleaas.sims.state import Json, State
from rleaas.sims.tool import Tool


@dataclass(frozen=True, slots=True)
class Feature:
    """One number of the vector observation, from 0 to 1."""

    name: str
    read: Callable[[State], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Vertical:
    """Everything that makes a world of this kind.

    Attributes:
        name: such as FinSim.
        domain: such as finance.
        summary: what it is, in a line.
        tools: all that agents can do.
        make: an organisation with its records, the same for the same seed and configuration.
            Its facts have every key that the vertical knows.
        prepare: puts a scenario's case into an organisation.
        features: what the vector observation tells: enough to decide right.
        scenarios: the library.
        verifiers: built-in ones: `id`, `name`, `type`, `logic`, `compliance_tags`, `description`.
        metrics: the verifier whose passes a metric is the rate of.
        applies: of metrics that are about something which not every task has, the condition that
            an episode has it; others say nothing of the agent, and are not counted.
        options: what its configuration may say, beside what every world's may.
    """

    name: str
    domain: str
    summary: str
    tools: tuple[Tool, ...]
    make: Callable[[int, Mapping[str, Json]], State]
    prepare: Callable[[State, Scenario, random.Random], None]
    features: tuple[Feature, ...]
    scenarios: tuple[Scenario, ...]
    verifiers: tuple[Mapping[str, Json], ...]
    metrics: Mapping[str, str] = field(default_factory=dict[str, str])
    applies: Mapping[str, str] = field(default_factory=dict[str, str])
    options: tuple[Option, ...] = ()

    @property
    def all_options(self) -> tuple[Option, ...]:
        """Everything that its configuration may say."""
        return (*COMMON, *self.options)
