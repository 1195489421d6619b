from typing import Any

import gymnasium
import pytest
import rlmesh
from rlcore import ConfigurationError
from rleaas.evaluation.engine import evaluate
from rleaas.evaluation.report import episode_record, results_of
from rleaas.models import EvaluationReport
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.results import EpisodeResult
from rlmesh.runs.statistics import bootstrap_mean_interval, wilson_interval


class Fragile(gymnasium.Wrapper[Any, Any, Any, Any]):
    """CartPole that cannot be reset with an odd seed."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        if seed is not None and seed % 2:
            raise RuntimeError("the pole broke")
        return super().reset(seed=seed, options=options)


def cartpole() -> gymnasium.Env[Any, Any]:
    return gymnasium.make("CartPole-v1")


def always_left(_observation: object) -> int:
    return 0


def test_every_seed_is_played_and_told_at_once() -> None:
    told: list[EpisodeResult] = []
    model = rlmesh.Model(always_left)
    result, stopped = evaluate(model, cartpole(), [3, 1, 2], on_episode=told.append)

    assert not stopped
    assert list(result.episodes) == told
    assert result.seeds == (3, 1, 2)


def test_the_threshold_decides_about_success() -> None:
    model = rlmesh.Model(always_left)
    high, _ = evaluate(model, cartpole(), [0, 1], success_threshold=400)
    low, _ = evaluate(model, cartpole(), [0, 1], success_threshold=5)

    assert (high.success_rate, low.success_rate) == (0.0, 1.0)


def test_a_failed_episode_counts_into_coverage_and_into_no_average() -> None:
    result, _ = evaluate(rlmesh.Model(always_left), Fragile(cartpole()), [0, 1, 2])
    numbers = results_of(result)

    assert (numbers["asked"], numbers["scored"], numbers["failed"]) == (3, 2, 1)
    assert result.episodes[1].outcome is Outcome.ENV_ERROR
    assert numbers["mean_return"] == (result.rewards[0] + result.rewards[1]) / 2


def test_a_stop_ends_the_run_between_two_steps_with_what_was_finished() -> None:
    told: list[EpisodeResult] = []
    result, stopped = evaluate(
        rlmesh.Model(always_left),
        cartpole(),
        [0, 1, 2],
        on_episode=told.append,
        stop_requested=lambda: len(told) == 1,
    )

    assert stopped
    assert [episode.outcome.scored for episode in result.episodes] == [True, False]
    assert result.coverage.asked == 3


def test_a_cap_cuts_episodes_off() -> None:
    result, _ = evaluate(rlmesh.Model(always_left), cartpole(), [0], max_episode_steps=3)

    assert result.episodes[0].outcome is Outcome.TRUNCATED
    assert result.total_steps == 3


def test_the_report_has_both_intervals_and_fits_the_clients_shape() -> None:
    seeds = range(12)
    result, _ = evaluate(rlmesh.Model(always_left), cartpole(), seeds, success_threshold=10)
    episodes = [episode_record(episode).to_dict() for episode in result.episodes]
    report = EvaluationReport.model_validate(
        {"id": "eval_1", "status": "completed", "episodes": episodes, **results_of(result)}
    )

    successes = sum(reward >= 10 for reward in result.rewards)
    assert report.success_interval == tuple(wilson_interval(successes, 12))
    assert report.return_interval == tuple(bootstrap_mean_interval(result.rewards))
    assert [episode.seed for episode in report.episodes] == list(seeds)
    assert report.package_versions["rlmesh"]


def test_without_a_score_there_is_no_number() -> None:
    result, _ = evaluate(rlmesh.Model(always_left), Fragile(cartpole()), [1])
    numbers = results_of(result)

    for name in ("mean_return", "std_return", "return_interval", "success_rate"):
        assert numbers[name] is None


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        evaluate(object(), cartpole(), [0])
