"""What stands between a job's learner and its environment: one stack for every trainer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlcore import ConfigurationError

from rleaas.training.curriculum import TAKES_TIERS, Curriculum, CurriculumSettings
from rleaas.training.rewards.spec import RewardSpec
from rleaas.training.scenarios import TIERS, Scenarios, scenarios_of

if TYPE_CHECKING:
    import gymnasium

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionParts:
    """A job's reward function, verifiers, scenarios and curriculum; picklable.

    Attributes:
        max_steps: the longest episode.
        reward: the function that says what a step is worth; None: the environment's own.
        verifiers: `{"weights", "definitions"}` as the job was given them.
        scenarios: what episodes are drawn from.
        curriculum: which tier they are of.
    """

    max_steps: int
    reward: RewardSpec | None = None
    verifiers: Mapping[str, object] | None = None
    scenarios: Scenarios | None = None
    curriculum: Curriculum | None = None

    @classmethod
    def of(
        cls,
        *,
        max_steps: int,
        reward: RewardSpec | None = None,
        verifiers: Mapping[str, object] | None = None,
        scenarios: Mapping[str, object] | None = None,
        curriculum: CurriculumSettings | None = None,
    ) -> SessionParts:
        """The parts that a checked request and its assignment describe.

        Raises:
            ConfigurationError: they do not fit one another.
        """
        suite = scenarios_of(scenarios) if scenarios else None
        tiers = TIERS if suite is None else suite.tiers
        return cls(
            max_steps=max_steps,
            reward=reward,
            verifiers=verifiers or None,
            scenarios=suite,
            curriculum=None if curriculum is None else Curriculum(curriculum, tiers),
        )

    def share(self) -> None:
        """Let processes that are started from here on count for the same curriculum."""
        if self.curriculum is not None:
            self.curriculum.share()

    def wrap(
        self, env: gymnasium.Env[Any, Any], *, tell: Tell | None = None
    ) -> gymnasium.Env[Any, Any]:
        """The environment as a learner of this job is to see it; itself where nothing is asked.

        `tell` is told what people want to read in the job's log.

        Raises:
            rlcore.Error: the reward function's source failed, a verifier cannot judge, or there
                is nothing that a curriculum could advance over (`curriculum_without_tiers`).
        """
        if self.curriculum is not None and self.scenarios is None:
            require_tiers(env.metadata)
        asked = (self.reward, self.verifiers, self.scenarios, self.curriculum)
        if all(part is None for part in asked):
            return env  # every layer costs a microsecond a step, and learners cap episodes too
        from rleaas.training.episode_env import EpisodeEnv
        from rleaas.training.mastery_env import MasteryEnv
        from rleaas.training.rewards.function import reward_function
        from rleaas.training.rewards.reward_env import RewardEnv
        from rleaas.training.rewards.verified_env import VerifiedEnv, verifiers_of

        episodes = EpisodeEnv(
            env, max_steps=self.max_steps, scenarios=self.scenarios, curriculum=self.curriculum
        )
        wrapped: gymnasium.Env[Any, Any] = episodes
        if self.reward is not None:
            wrapped = RewardEnv(
                wrapped,
                self.reward,
                reward_function(self.reward),
                episodes,
                judges_success=self.verifiers is None,
            )
        if self.verifiers is not None:
            wrapped = VerifiedEnv(wrapped, verifiers_of(self.verifiers), tell)
        if self.curriculum is not None:
            wrapped = MasteryEnv(wrapped, self.curriculum)
        return wrapped


def require_tiers(metadata: Mapping[str, object]) -> None:
    """Refuse a curriculum without a scenario suite where the environment takes no tiers.

    Raises:
        ConfigurationError: nothing says what a tier is; code `curriculum_without_tiers`.
    """
    if metadata.get(TAKES_TIERS) is not True:
        raise ConfigurationError(
            "the curriculum has no tiers to advance over: the job has no scenario suite, and its "
            "environment does not say that it takes tiers",
            code="curriculum_without_tiers",
            hint="Name a suite with scenario_suite_id, or let the environment's reset read "
            f"options['tier'] (1 to {TIERS[-1]}) and say metadata[{TAKES_TIERS!r}] = True",
        )
