"""Agents that need no checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from rlcore import ConfigurationError


def agent_named(name: str | None, contract: Mapping[str, object]) -> object:
    """Return what plays under this name, as `rlmesh.run` takes it.

    `random` takes any action of the space; of a world's text face, a call of any tool.

    Raises:
        ConfigurationError: there is no such agent.
    """
    if name != "random":
        raise ConfigurationError(f"there is no agent {name!r}", code="unknown_agent")
    import rlmesh

    space = contract.get("action_space")
    kind = cast("Mapping[str, object]", space).get("kind") if isinstance(space, Mapping) else None
    if kind != "text":
        return rlmesh.RANDOM_SAMPLE
    from rleaas.sims.agents import RandomAgent

    return rlmesh.Model(RandomAgent().predict, name="random")
