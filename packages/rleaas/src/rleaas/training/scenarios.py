"""The scenarios that a job trains on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from rlcore import ConfigurationError

TIERS = (1, 2, 3, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A task of one tier, as an environment is told of it."""

    id: str
    tier: int
    name: str = ""
    version: int | None = None
    task_prompt: str = ""
    max_steps: int | None = None
    available_tools: tuple[str, ...] | None = None
    context_injection: Mapping[str, object] = field(default_factory=dict[str, object])

    def to_json(self) -> dict[str, object]:
        """What a reset's options say of it."""
        return {
            "id": self.id,
            "name": self.name,
            "tier": self.tier,
            "version": self.version,
            "task_prompt": self.task_prompt,
            "max_steps": self.max_steps,
            "available_tools": None if self.available_tools is None else list(self.available_tools),
            "context_injection": dict(self.context_injection),
        }


@dataclass(frozen=True, slots=True)
class Scenarios:
    """A suite: of each tier some scenarios, in their order.

    Raises:
        ConfigurationError: there is none.
    """

    all: tuple[Scenario, ...]

    def __post_init__(self) -> None:
        if not self.all:
            raise ConfigurationError(
                "there is no scenario to train on", hint="Name a suite that has some"
            )

    @property
    def tiers(self) -> tuple[int, ...]:
        """The tiers that it has scenarios of, in rising order."""
        return tuple(sorted({one.tier for one in self.all}))

    def draw(self, seed: int, tier: int | None = None) -> Scenario:
        """The scenario of an episode with this seed: the same one every time."""
        choice = [one for one in self.all if tier is None or one.tier == tier]
        if not choice:
            raise ConfigurationError(f"the suite has no scenario of tier {tier}")
        drawn = hashlib.sha256(f"scenario {seed} {tier}".encode()).digest()
        return choice[int.from_bytes(drawn[:8], "big") % len(choice)]


def scenarios_of(definitions: Mapping[str, object]) -> Scenarios:
    """The scenarios that a job was given, `{"scenarios": [...]}`.

    Raises:
        ConfigurationError: they are written wrongly.
    """
    listed = definitions.get("scenarios")
    if not isinstance(listed, list | tuple):
        raise ConfigurationError("a job's scenarios are a list", code="invalid_scenarios")
    return Scenarios(tuple(_scenario(one) for one in cast("Sequence[object]", listed)))


def _scenario(given: object) -> Scenario:
    if not isinstance(given, Mapping):
        raise ConfigurationError("a scenario is an object", code="invalid_scenarios")
    said = cast("Mapping[str, object]", given)
    scenario_id, tier = said.get("id"), said.get("tier")
    if not isinstance(scenario_id, str) or not isinstance(tier, int) or tier not in TIERS:
        raise ConfigurationError(
            f"a scenario has an id and a tier of {TIERS}, not {scenario_id!r} and {tier!r}",
            code="invalid_scenarios",
        )
    version, steps = said.get("version"), said.get("max_steps")
    tools, context = said.get("available_tools"), said.get("context_injection")
    return Scenario(
        id=scenario_id,
        tier=tier,
        name=str(said.get("name") or ""),
        version=version if isinstance(version, int) else None,
        task_prompt=str(said.get("task_prompt") or ""),
        max_steps=steps if isinstance(steps, int) and steps > 0 else None,
        available_tools=tuple(str(tool) for tool in cast("Sequence[object]", tools))
        if isinstance(tools, list | tuple)
        else None,
        context_injection=cast("Mapping[str, object]", context)
        if isinstance(context, Mapping)
        else {},
    )
