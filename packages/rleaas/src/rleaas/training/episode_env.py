"""An environment whose episodes have a number, a scenario, a tier and a cap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import gymnasium

from rleaas.training.curriculum import Curriculum
from rleaas.training.scenarios import Scenarios

# Observations, actions and infos are whatever the environment's spaces say.
Value = Any

SCENARIO = "scenario"
"""The key of the reset options under which an environment finds its scenario."""
TIER = "tier"
"""The key of the reset options, and of an episode's last info, with the curriculum's tier."""
SCENARIO_ID = "scenario_id"
"""The info key of an episode's last step with the scenario that it was of."""


class EpisodeEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The innermost wrapper of a session: the outer ones ask it which episode this is.

    `reset` hands the scenario of the episode to the environment as `options["scenario"]`, an object
    with `id`, `name`, `tier`, `version`, `task_prompt`, `max_steps`, `available_tools` and
    `context_injection`, and the tier as `options["tier"]`. Which scenario it is follows from the
    episode's seed and the tier alone.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        *,
        max_steps: int,
        scenarios: Scenarios | None = None,
        curriculum: Curriculum | None = None,
    ) -> None:
        super().__init__(env)
        self._longest = max_steps
        self._scenarios = scenarios
        self._curriculum = curriculum
        self._cap = max_steps
        self._tags: dict[str, Any] = {}
        self._draws = 0
        self._tier: int | None = None
        self._tier_again: int | None = None
        self.episode = 0
        self.seed: int | None = None
        self.step_number = 0

    def session_state(self) -> dict[str, object]:
        """What a restarted job needs to begin this episode again, and to go on after it."""
        state: dict[str, object] = {"episode": self.episode, "tier": self._tier}
        if self._curriculum is not None:
            state["curriculum"] = self._curriculum.get_state()
        return state

    @property
    def next_episode(self) -> int:
        """The number of the episode that the next reset begins."""
        return self.episode + bool(self.step_number)

    def renumber(self, episode: int) -> None:
        """Let the next reset begin the episode of this number."""
        self.episode, self.step_number = episode, 0

    def restore_session(self, state: Mapping[str, object]) -> None:
        """Let the next reset begin that episode again.

        Raises:
            ConfigurationError: it is the state of another job.
        """
        self.episode = cast("int", state["episode"])
        self.step_number = 0
        self._tier_again = cast("int | None", state["tier"])
        if self._curriculum is not None:
            self._curriculum.set_state(cast("Sequence[float]", state.get("curriculum") or ()))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Value, dict[str, Any]]:
        """Start an episode of the tier that the curriculum is at, or of `options["tier"]`."""
        # An episode that was never stepped was only a look at whether there is room.
        self.episode, self.step_number = self.next_episode, 0
        self.seed = seed
        chosen = self._choose(seed, (options or {}).get(TIER))
        # What the caller asks for goes before what was drawn.
        options = {**chosen, **(options or {})} if chosen else options
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Value) -> tuple[Value, float, bool, bool, dict[str, Any]]:
        """Step, and end the episode at the cap; its last info says of which scenario it was."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.step_number += 1
        truncated = truncated or (self.step_number >= self._cap and not terminated)
        if (terminated or truncated) and self._tags:
            info = {**info, **self._tags}
        return observation, float(reward), terminated, truncated, info

    def _choose(self, seed: int | None, asked: int | None) -> dict[str, Any]:
        self._cap = self._longest
        tier = None
        if self._curriculum is not None:
            tier = asked or self._tier_again or self._curriculum.tier
        self._tier, self._tier_again = tier, None
        self._tags = {} if tier is None else {TIER: tier}
        chosen: dict[str, Any] = dict(self._tags)
        if self._scenarios is not None:
            self._draws += 1
            scenario = self._scenarios.draw(self._draws if seed is None else seed, tier)
            self._cap = min(self._longest, scenario.max_steps or self._longest)
            self._tags = {TIER: scenario.tier, SCENARIO_ID: scenario.id}
            chosen = {SCENARIO: scenario.to_json(), TIER: scenario.tier}
        return chosen
