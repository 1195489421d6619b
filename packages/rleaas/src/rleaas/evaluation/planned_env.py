"""The environment of an evaluation: each episode is told its scenario, seed and tier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import gymnasium
from rlcore import ConfigurationError
from rlmesh.models.seeds import ENV_RESET_OPTIONS_KEY, TRIAL_INDEX_OPTION, trial_index

from rleaas.evaluation.plans import EpisodePlan
from rleaas.training.curriculum import TAKES_TIERS
from rleaas.training.episode_env import SCENARIO, TIER

# Observations, actions and infos are whatever the environment's spaces say.
Value = Any


class PlannedEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that plays plans; a run names them by the number of the trial.

    Each episode ends at the step budget of its scenario.

    Raises:
        ConfigurationError: the plans have scenarios, and the environment takes none.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], plans: Sequence[EpisodePlan]) -> None:
        super().__init__(env)
        self._plans = plans
        self._budget: int | None = None
        own = _reset_options(env.metadata)
        self._tells_trial = TRIAL_INDEX_OPTION in own
        declared = [*own, *([] if self._tells_trial else [TRIAL_INDEX_OPTION])]
        self._metadata = {**env.metadata, ENV_RESET_OPTIONS_KEY: declared}
        if any(plan.scenario for plan in plans):
            require_scenarios(env.metadata)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Value, dict[str, Any]]:
        """Start the episode that the trial's number stands for."""
        number = trial_index(options)
        if number is None:
            raise ConfigurationError("a planned environment is reset with the number of a trial")
        plan = self._plans[number]
        told: dict[str, Any] = {TRIAL_INDEX_OPTION: number} if self._tells_trial else {}
        self._budget = None
        if plan.scenario is not None:
            told[SCENARIO] = plan.scenario.to_json()
            told[TIER] = plan.scenario.tier
            self._budget = plan.scenario.max_steps
        return self.env.reset(seed=plan.seed, options=told or None)

    def step(self, action: Value) -> tuple[Value, float, bool, bool, dict[str, Any]]:
        """Step, and end the episode at its budget."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if self._budget is not None:
            self._budget -= 1
            truncated = truncated or (self._budget <= 0 and not terminated)
        return observation, float(reward), terminated, truncated, info


def require_scenarios(metadata: Mapping[str, object]) -> None:
    """Do nothing where an environment that says this about itself plays scenarios.

    Raises:
        ConfigurationError: it does not say so: it would play something else under their names.
    """
    if metadata.get(TAKES_TIERS) is True or SCENARIO in _reset_options(metadata):
        return
    raise ConfigurationError(
        "the environment does not say that it plays scenarios",
        code="no_scenarios",
        hint=f"One that reads options[{SCENARIO!r}] at a reset has metadata[{TAKES_TIERS!r}] = "
        f"True, or {SCENARIO!r} among metadata[{ENV_RESET_OPTIONS_KEY!r}]; else leave them out",
    )


def _reset_options(metadata: Mapping[str, object]) -> list[str]:
    declared = metadata.get(ENV_RESET_OPTIONS_KEY)
    if not isinstance(declared, list | tuple):
        return []
    return [str(one) for one in cast("Sequence[object]", declared)]
