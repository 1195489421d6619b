"""The discrete face of a world: which tool next, for classical algorithms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rleaas.sims.info import begun, ended, stepped
from rleaas.sims.state import Json
from rleaas.sims.tool import Tool
from rleaas.sims.vertical import Vertical
from rleaas.sims.world import World

Observation = NDArray[np.float32]


class DiscreteWorld(gymnasium.Env[Observation, np.int64]):
    """An action is a tool, called with the arguments that it suggests for the case in focus.

    The observation has, from 0 to 1: the vertical's features; which tools are allowed; which ran
    for the case in focus; whether the last call did; and the share of the budget that is left.
    `reset` takes `options["scenario"]`, an id or an object, and `options["tier"]`.
    """

    def __init__(
        self,
        vertical: Vertical,
        config: Mapping[str, Json] | None = None,
        *,
        tools: Sequence[Tool] = (),
    ) -> None:
        self.world = world = World(vertical, config, tools=tools)
        self._names = [tool.name for tool in world.tools]
        self._places = {name: place for place, name in enumerate(self._names)}
        self._features = [feature.read for feature in vertical.features]
        count = len(self._names)
        self.action_space = spaces.Discrete(count)
        size = len(self._features) + 2 * count + 2
        self.observation_space = spaces.Box(0.0, 1.0, (size,), np.float32)
        self.metadata = {
            **self.world.identity,
            "render_modes": [],
            "action_names": self._names,
            "takes_tiers": True,
            "observation_names": [
                *(feature.name for feature in vertical.features),
                *(f"allowed.{name}" for name in self._names),
                *(f"ran.{name}" for name in self._names),
                "last_call_ran",
                "budget_left",
            ],
        }
        self._ends = [tool.ends_episode for tool in world.tools]
        self._seen: Observation = np.zeros(size, np.float32)
        self._allowed = [0.0] * count
        self._ran = [0.0] * count

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        said = begun(self.world, seed, self.np_random, options)
        self._allowed = [float(self.world.allows(name)) for name in self._names]
        self._ran = [0.0] * len(self._names)
        self._look()
        return self._observed(True), said

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Call the tool."""
        world = self.world
        place = int(action)
        name = self._names[place]
        arguments = world.suggested(name)
        result = world.call(name, arguments)
        if result.ok:  # else there is nothing new to see
            self._ran[place] = 1.0
            if self._ends[place] and not result.ends:
                # The next case of a queue begins as any case does: with nothing done.
                self._ran = [0.0] * len(self._names)
            self._look()
        info = stepped(world, [(name, arguments, result)])
        terminated, truncated = ended(world, info)
        return self._observed(result.ok), result.reward, terminated, truncated, info

    def _look(self) -> None:
        state = self.world.state
        seen = [read(state) for read in self._features]
        self._seen = np.array([*seen, *self._allowed, *self._ran, 0.0, 0.0], np.float32)

    def _observed(self, ran: bool) -> Observation:
        observed = self._seen.copy()
        observed[-2] = ran
        observed[-1] = 1.0 - self.world.steps_taken / self.world.budget
        return observed
