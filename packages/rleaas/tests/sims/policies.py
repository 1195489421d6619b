"""Policies that choose a tool, and how they fare on a vertical's scenarios."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from rleaas.sims import Scenario, Vertical, World

Seen = Mapping[str, bool]
Policy = Callable[[World], str]
Policies = Callable[[], Policy]
"""Makes a policy for each scenario."""


def seen(world: World) -> Seen:
    """The features by name."""
    return {one.name: one.read(world.state) > 0.5 for one in world.vertical.features}


def plays(world: World, scenario: Scenario, policy: Policy, seed: int = 0) -> bool:
    """Whether the policy, with suggested arguments, succeeds on the scenario."""
    world.reset(seed, scenario)
    while not world.over:
        name = policy(world)
        world.call(name, world.suggested(name))
    return world.succeeded()


def solved_by(vertical: Vertical, policies: Policies) -> list[str]:
    """The ids of the scenarios on which a policy succeeds."""
    world = World(vertical)
    return [one.id for one in vertical.scenarios if plays(world, one, policies())]


def always(name: str) -> Policies:
    """Calls this tool again and again; where the task does not allow it, its last one."""
    return lambda: lambda world: name if world.allows(name) else world.available[-1].name


def in_order(order: Callable[[list[str]], list[str]] = list) -> Policies:
    """Calls every tool that the task allows, one after the other, in this order of their names."""

    def make() -> Policy:
        tried = 0

        def policy(world: World) -> str:
            nonlocal tried
            names = order([tool.name for tool in world.available])
            tried += 1
            return names[(tried - 1) % len(names)]

        return policy

    return make


def checks_then(final: str) -> Policies:
    """Calls every tool that only looks, then this one; else the last one."""

    def make() -> Policy:
        waiting: list[str] | None = None

        def policy(world: World) -> str:
            nonlocal waiting
            if waiting is None:
                waiting = [
                    tool.name for tool in world.available if tool.category in ("read", "search")
                ]
            if waiting:
                return waiting.pop(0)
            return final if world.allows(final) else world.available[-1].name

        return policy

    return make


def at_random(seed: int) -> Policies:
    """Calls tools of the task at random."""
    rng = random.Random(seed)
    return lambda: lambda world: rng.choice([tool.name for tool in world.available])
