import math
import statistics
from datetime import UTC, datetime
from typing import Any

import pytest
from rlcore import ConfigurationError, EnvironmentIdentity
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.results import EpisodeResult, RunResult


def episode(
    index: int = 0, reward: float | None = 1.0, **facts: Any
) -> EpisodeResult:  # Any: the fields' own types
    values: dict[str, Any] = {"seed": index + 10, "steps": 5, "truncated": False, **facts}
    return EpisodeResult(index=index, reward=reward, terminated=True, **values)


LOST: dict[str, Any] = {"outcome": Outcome.ENV_ERROR, "error": "ValueError: broken"}


@pytest.mark.parametrize(
    ("success", "truncated", "outcome"),
    [
        (True, False, Outcome.SUCCESS),
        (True, True, Outcome.SUCCESS),
        (False, True, Outcome.FAILURE),
        (None, True, Outcome.TRUNCATED),
        (None, False, Outcome.COMPLETED),
    ],
)
def test_an_episode_that_ended_has_the_outcome_of_its_signals(
    success: bool | None, truncated: bool, outcome: Outcome
) -> None:
    assert episode(success=success, truncated=truncated).outcome is outcome


@pytest.mark.parametrize(
    "outcome",
    ["env_error", "timeout", "infra_error", "grader_error", "cancelled"],
)
def test_a_failed_episode_never_has_a_reward(outcome: str) -> None:
    failed = episode(reward=99.0, success=True, outcome=Outcome(outcome), error="x")

    assert failed.reward is None
    assert failed.success is None
    assert failed.outcome == outcome


def test_failed_episodes_are_counted_beside_the_mean_not_in_it() -> None:
    result = RunResult((episode(0, 10.0), episode(1, 1e9, **LOST), episode(2, 20.0)), asked=5)

    assert result.mean_reward == 15.0
    assert result.coverage == (5, 2, 1)
    assert str(result.coverage) == "2 of 5 scored, 1 failed"
    assert result.num_episodes == 3
    assert result.total_steps == 15


def test_a_run_without_a_score_has_no_mean() -> None:
    result = RunResult((episode(0, **LOST),))

    assert math.isnan(result.mean_reward)
    assert result.mean_reward_interval is None
    assert result.to_dict()["mean_reward"] is None


def test_the_success_rate_needs_an_answer_from_every_scored_episode() -> None:
    said = (episode(0, success=True), episode(1, success=False), episode(2, **LOST))

    assert RunResult(said).success_rate == 0.5
    assert RunResult((*said, episode(3))).success_rate is None
    assert RunResult((*said, episode(3))).success_interval is None


def test_a_result_survives_json_unchanged() -> None:
    result = RunResult(
        episodes=(
            episode(0, 10.0, success=True, trial=0),
            episode(1, **LOST),
            episode(2, math.inf),
        ),
        environment=EnvironmentIdentity("CartPole-Prod", 3, "sha256:12ab"),
        model="PPO",
        model_digest="sha256:77",
        asked=4,
        stopped="interrupted",
        started_at=datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC),
        finished_at=datetime(2026, 1, 2, 3, 5, tzinfo=UTC),
        package_versions={"rlmesh": "2.0.0a1"},
        advisories=("mind the gap",),
    )

    assert RunResult.from_json(result.to_json()) == result


@pytest.mark.parametrize(
    "text",
    ["[]", "not json", "{}", '{"schema": "rlmesh.run.v1"}'],
)
def test_what_is_no_record_of_a_run_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="not the record of a run"):
        RunResult.from_json(text)


def test_an_unknown_field_of_an_episode_is_named() -> None:
    with pytest.raises(ConfigurationError, match="'rewards' is not a field"):
        EpisodeResult.from_dict({**episode().to_dict(), "rewards": 1})


def test_equal_runs_agree() -> None:
    ours = RunResult((episode(0, 0.1 + 0.2), episode(1, **LOST)))
    theirs = RunResult((episode(0, 0.3), episode(1, **LOST)))

    assert ours.agrees_with(theirs) == ()


def test_every_field_that_differs_is_reported_with_its_episode() -> None:
    ours = RunResult((episode(0), episode(1, 5.0)))
    theirs = (episode(0), episode(1, 5.1, steps=6, seed=99, success=True))

    found = ours.agrees_with(theirs)

    assert [item.field for item in found] == ["seed", "steps", "outcome", "reward"]
    assert str(found[1]) == "episode 1 (seed 11): steps is 5 here and 6 there"


def test_a_missing_episode_is_a_disagreement() -> None:
    ours, theirs = RunResult((episode(0), episode(1))), RunResult((episode(0),))

    assert [(item.index, item.theirs) for item in ours.agrees_with(theirs)] == [(1, "missing")]
    assert [(item.index, item.ours) for item in theirs.agrees_with(ours)] == [(1, "missing")]


def test_a_reward_and_no_reward_disagree() -> None:
    lost = episode(0, outcome=Outcome.TIMEOUT)
    fields = [item.field for item in RunResult((episode(0),)).agrees_with((lost,))]

    assert fields == ["outcome", "reward"]


def test_the_summary_names_the_environment_and_the_intervals() -> None:
    identity = EnvironmentIdentity("CartPole-v1", 2, "sha256:0123456789abcdef")
    result = RunResult(
        tuple(episode(i, 500.0, success=True) for i in range(50)), environment=identity
    )

    assert str(result) == (
        f"{identity}: 50 of 50 scored, 0 failed, mean reward 500.00 [500.00, 500.00], "
        "success 100% [93%, 100%]"
    )


def test_what_is_no_episode_is_refused() -> None:
    for broken in ({}, {**episode().to_dict(), "outcome": "splendid"}):
        with pytest.raises(ConfigurationError, match="not the record of an episode"):
            EpisodeResult.from_dict(broken)


def test_the_spread_of_rewards_is_the_samples_standard_deviation() -> None:
    rewards = [1.0, 4.0, 10.0]

    result = RunResult(tuple(episode(index, reward) for index, reward in enumerate(rewards)))

    assert result.std_reward == pytest.approx(statistics.stdev(rewards))
    assert math.isnan(RunResult((episode(),)).std_reward)


def test_rewards_that_are_no_number_agree_with_each_other_only() -> None:
    strange = RunResult((episode(0, math.nan),))

    assert strange.agrees_with((episode(0, math.nan),)) == ()
    assert len(strange.agrees_with((episode(0, 1.0),))) == 1


def test_failed_episodes_are_at_hand() -> None:
    result = RunResult((episode(0), episode(1, **LOST)))

    assert [item.index for item in result.failed_episodes] == [1]
    assert str(RunResult((episode(1, **LOST),))) == (
        "environment: 0 of 1 scored, 1 failed, no score"
    )
