"""Which scenario an episode plays: one of the library's, or one that a user made of it."""

from __future__ import annotations

import difflib
import hashlib
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import cast

from rlcore import ConfigurationError

from rleaas.sims.scenario import TIERS, Scenario
from rleaas.sims.state import Json
from rleaas.sims.vertical import Vertical

BASED_ON = "based_on"
"""The key of a scenario's `context_injection` with the library's scenario that it varies."""


class Library:
    """The scenarios of a vertical that a configuration leaves.

    A scenario that is named is played whatever its tier and split; what is drawn obeys both. `own`
    are the names of tools that a user has added.
    """

    def __init__(
        self, vertical: Vertical, config: Mapping[str, Json], own: Collection[str] = ()
    ) -> None:
        self._vertical = vertical
        self._own = own
        self._by_id = {one.id: one for one in vertical.scenarios}
        ceiling, split = config["complexity_ceiling"], config["split"]
        self._drawn = tuple(
            one for one in vertical.scenarios if one.tier <= ceiling and split in ("all", one.split)
        )
        self._of_tier = {
            tier: tuple(one for one in self._drawn if one.tier == tier) for tier in TIERS
        }

    def named(self, scenario_id: str) -> Scenario:
        """The scenario with this id.

        Raises:
            ConfigurationError: there is none; the hint has the nearest.
        """
        found = self._by_id.get(scenario_id)
        if found is None:
            near = difflib.get_close_matches(scenario_id, self._by_id, n=1)
            raise ConfigurationError(
                f"{self._vertical.name} has no scenario {scenario_id!r}",
                code="unknown_scenario",
                hint=f"Did you mean {near[0]!r}?" if near else None,
            )
        return found

    def draw(self, rng: random.Random, tier: int | None = None) -> Scenario:
        """One of those that the configuration leaves, of this tier where one is asked for.

        Raises:
            ConfigurationError: none is left.
        """
        choice = self._drawn if tier is None else self._of_tier.get(tier, ())
        if not choice:
            raise ConfigurationError(
                f"{self._vertical.name} draws no scenario of tier {tier}",
                code="unknown_tier",
                hint="Tiers are 1 to 4, up to config.complexity_ceiling",
            )
        return choice[int(rng.random() * len(choice))]

    def described(self, said: Mapping[str, object]) -> Scenario:
        """The scenario that a reset's options describe (see `training.scenarios`).

        Its id, or `context_injection.based_on`, names the library's; else its id chooses one of
        its tier, the same one each time. Its own prompt, steps and tools go before that one's.

        Raises:
            ConfigurationError: it describes none, or its tools are none of the world's.
        """
        scenario_id = said.get("id")
        context = said.get("context_injection")
        based_on = (
            cast("Mapping[str, object]", context).get(BASED_ON)
            if isinstance(context, Mapping)
            else None
        )
        if isinstance(based_on, str):
            found = self.named(based_on)
        elif isinstance(scenario_id, str) and scenario_id in self._by_id:
            found = self._by_id[scenario_id]
        else:
            found = self._chosen(scenario_id, said.get("tier"))
        prompt, steps, tools = (
            said.get(key) for key in ("task_prompt", "max_steps", "available_tools")
        )
        if isinstance(scenario_id, str) and scenario_id:
            found = replace(found, id=scenario_id)
        if isinstance(prompt, str) and prompt and prompt != found.prompt:
            found = replace(found, prompt=f"{_literal(prompt)}\n{found.prompt}")
        if isinstance(steps, int) and not isinstance(steps, bool) and steps > 0:
            found = replace(found, max_steps=steps)
        if isinstance(tools, list | tuple):
            found = replace(found, tools=self._known(cast("Sequence[object]", tools)))
        return found

    def _chosen(self, scenario_id: object, tier: object) -> Scenario:
        number = tier if isinstance(tier, int) else None
        drawn = hashlib.sha256(f"{scenario_id}".encode()).digest()
        return self.draw(random.Random(int.from_bytes(drawn[:8], "big")), number)

    def _known(self, tools: Sequence[object]) -> tuple[str, ...]:
        names = [tool.name for tool in self._vertical.tools]
        # A platform may list tools that do nothing here, but not only such.
        if tools and not any(tool in names or tool in self._own for tool in tools):
            near = difflib.get_close_matches(str(tools[0])[:200], names, n=1)
            raise ConfigurationError(
                f"{self._vertical.name} has no tool {tools[0]!r}: the scenario's available_tools "
                "are none of the world's",
                code="unknown_tool",
                hint=f"Did you mean {near[0]!r}?" if near else f"It has {', '.join(names)}",
            )
        return tuple(str(tool) for tool in tools if tool in names)


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
