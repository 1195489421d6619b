# gymnasium leaves its type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from typing import Any

import gymnasium
import pytest
from rleaas.training.curriculum import CurriculumSettings
from rleaas.training.rewards.spec import RewardSpec
from rleaas.training.session_parts import SessionParts
from rleaas.training.trainer import Resume

# So that the sessions are in different groups at the same time.
SETTINGS = {"num_envs": 3, "num_episodes": 40, "checkpoint_interval": 8}


class Staged(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Keeps the seed and the tier of every episode; each is a success."""

    def __init__(self, env: gymnasium.Env[Any, Any], kept: list[tuple[Any, Any]]) -> None:
        super().__init__(env)
        self._kept = kept
        self.metadata = {"takes_tiers": True}

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self._kept.append((seed, options["tier"]))
        return super().reset(seed=seed)

    def step(self, action: Any) -> Any:
        *told, info = super().step(action)
        return *told, {**info, "is_success": True}


class Sessions:
    """Two tiers, of which nine successes master the first, and a reward that grows by episode."""

    def __init__(self, bandit: type[Any]) -> None:
        self._bandit = bandit
        self.kept: list[tuple[Any, Any]] = []
        self.parts = SessionParts.of(
            max_steps=10,
            reward=RewardSpec(text="reward + 0.001 * episode * (step == 1)", is_code=False),
            curriculum=CurriculumSettings(thresholds={3: 1.0}, window=9, start_tier=3),
        )

    def __call__(self, session: int) -> Any:
        return self.parts.wrap(Staged(self._bandit(), self.kept))


def test_a_group_stays_at_the_tier_at_which_it_began(
    train: Any, notebook: Any, bandit: type[Any]
) -> None:
    sessions = Sessions(bandit)
    train(notebook, sessions=sessions, **SETTINGS)

    tiers_of: dict[int, set[int]] = {}
    for seed, tier in sessions.kept:
        tiers_of.setdefault(seed, set()).add(tier)
    assert [len(tiers) for tiers in tiers_of.values()] == [1] * len(tiers_of)
    # The ninth success is in the middle of the third group, which is finished at its tier.
    assert [progress.tier for progress in notebook.episodes] == [3] * 12 + [4] * 28


@pytest.mark.parametrize("steps", [25, 40, 60])
def test_a_restarted_job_goes_on_at_its_tier_and_with_its_numbers(
    train: Any, notebook_type: Any, bandit: type[Any], steps: int
) -> None:
    whole, cut, again = notebook_type(), notebook_type(stop_after=steps), notebook_type()
    train(whole, sessions=Sessions(bandit), **SETTINGS)
    train(cut, sessions=Sessions(bandit), job_id="job_2", **SETTINGS)
    _, saved, path = cut.checkpoints[-1]
    resume = Resume(policy=path, state=path.with_suffix(".state.zip"), same_job=True)
    train(again, sessions=Sessions(bandit), job_id="job_2", resume=resume, **SETTINGS)

    def told(one: Any) -> Any:
        return one.episode, one.episode_reward, one.tier, one.timestep

    assert 0 < saved.episode < 40
    joined = [*cut.episodes[: saved.episode], *again.episodes]
    assert [told(one) for one in joined] == [told(one) for one in whole.episodes]
