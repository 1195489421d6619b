from typing import Any

import gymnasium
import pytest
import rlmesh
from rlcore import ConfigurationError
from rleaas.evaluation.engine import evaluate
from rleaas.evaluation.plans import episode_plans
from rleaas.training.scenarios import Scenario
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.results import EpisodeResult


def cartpole() -> gymnasium.Env[Any, Any]:
    return gymnasium.make("CartPole-v1")


def always_left(_observation: object) -> int:
    return 0


def test_every_seed_is_played_and_told_at_once() -> None:
    told: list[EpisodeResult] = []
    model = rlmesh.Model(always_left)
    result, stopped = evaluate(model, cartpole, episode_plans([3, 1, 2]), on_episode=told.append)

    assert not stopped
    assert list(result.episodes) == told
    assert result.seeds == (3, 1, 2)


def test_the_threshold_decides_about_success() -> None:
    model = rlmesh.Model(always_left)
    high, _ = evaluate(model, cartpole, episode_plans([0, 1]), success_threshold=400)
    low, _ = evaluate(model, cartpole, episode_plans([0, 1]), success_threshold=5)

    assert (high.success_rate, low.success_rate) == (0.0, 1.0)


def test_a_stop_ends_the_run_between_two_steps_with_what_was_finished() -> None:
    told: list[EpisodeResult] = []
    result, stopped = evaluate(
        rlmesh.Model(always_left),
        cartpole,
        episode_plans([0, 1, 2]),
        on_episode=told.append,
        stop_requested=lambda: len(told) == 1,
    )

    assert stopped
    assert [episode.outcome.scored for episode in result.episodes] == [True, False]
    assert result.coverage.asked == 3


def test_a_cap_cuts_episodes_off() -> None:
    result, _ = evaluate(
        rlmesh.Model(always_left), cartpole, episode_plans([0]), max_episode_steps=3
    )

    assert result.episodes[0].outcome is Outcome.TRUNCATED
    assert result.total_steps == 3


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        evaluate(object(), cartpole, episode_plans([0]))


class Tasks(gymnasium.Env[Any, Any]):
    """Ends when it was told so; it keeps what each reset was told."""

    observation_space = gymnasium.spaces.Discrete(10)
    action_space = gymnasium.spaces.Discrete(2)
    metadata: dict[str, Any] = {"takes_tiers": True}  # noqa: RUF012  # as gymnasium declares it

    def __init__(self, told: list[tuple[int | None, dict[str, Any] | None]]) -> None:
        self.told = told

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        self.told.append((seed, options))
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        return 0, 1.0, False, False, {}


SCENARIOS = (
    Scenario(id="a", tier=1, task_prompt="wire it", max_steps=3),
    Scenario(id="b", tier=2, max_steps=5),
)


def test_each_episode_is_told_its_scenario_and_ends_at_its_budget() -> None:
    told: list[tuple[int | None, dict[str, Any] | None]] = []
    plans = episode_plans([7, 8], scenarios=SCENARIOS, repetitions=2)

    result, _ = evaluate(rlmesh.Model(always_left), lambda: Tasks(told), plans)

    assert [seed for seed, _ in told] == [7, 7, 8, 8] * 2
    assert [(o or {})["scenario"]["id"] for _, o in told] == ["a", "b"] * 4
    assert [(o or {})["tier"] for _, o in told] == [1, 2] * 4
    assert [one.steps for one in result.episodes] == [3, 5] * 4
    assert all(one.outcome is Outcome.TRUNCATED for one in result.episodes)


def test_several_workers_play_each_plan_once() -> None:
    told: list[tuple[int | None, dict[str, Any] | None]] = []
    plans = episode_plans(range(10), scenarios=SCENARIOS)

    result, _ = evaluate(rlmesh.Model(always_left), lambda: Tasks(told), plans, num_workers=3)

    played = sorted((seed, (options or {})["scenario"]["id"]) for seed, options in told)
    assert played == sorted((plan.seed, plan.pair[0]) for plan in plans)
    assert [one.index for one in result.episodes] == list(range(20))


def test_a_repetition_has_another_randomness_and_the_same_seed() -> None:
    first, second = episode_plans([7], repetitions=2)

    assert (first.run_seed, first.seed, second.seed) == (7, 7, 7)
    assert second.run_seed != 7


def test_policies_are_random_in_another_way_in_each_scenario_and_the_environments_seed_stays() -> (
    None
):
    plans = episode_plans([7], scenarios=SCENARIOS, repetitions=2)

    assert len({plan.run_seed for plan in plans}) == len(plans)
    assert {plan.seed for plan in plans} == {7}


def test_an_evaluation_of_before_is_played_again_with_the_randomness_that_it_had() -> None:
    plans = episode_plans([7], scenarios=SCENARIOS, repetitions=2, seeding=1)

    assert [plan.run_seed for plan in plans[:2]] == [7, 7]
    assert plans[2].run_seed == plans[3].run_seed != 7


def test_an_environment_that_takes_no_scenarios_is_refused() -> None:
    with pytest.raises(ConfigurationError) as caught:
        evaluate(rlmesh.Model(always_left), cartpole, episode_plans([0], scenarios=SCENARIOS))
    assert caught.value.code == "no_scenarios"
