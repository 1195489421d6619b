"""Policies that collapse are told of, once; those that have learned something are not."""

from __future__ import annotations

import pytest
from rleaas.training.collapse import CollapseWatch, watch_of
from rleaas.training.config import validate_training_config
from rleaas.training.trainer import Progress

SURE = {"entropy": 1e-9}


def at(episode: int, avg_reward: float | None, success_rate: float | None = None) -> Progress:
    return Progress(
        episode=episode,
        timestep=10 * episode,
        episode_reward=avg_reward,
        episode_length=10,
        avg_reward=avg_reward,
        success_rate=success_rate,
        wall_seconds=1.0,
    )


def test_a_policy_without_entropy_whose_return_fell_is_told_of_once() -> None:
    watch = CollapseWatch()
    assert watch.look(at(10, None), SURE) is None
    assert watch.look(at(20, 22.0), {"entropy": 0.69}) is None
    assert watch.look(at(30, 15.0), {"loss": 0.1}) is None
    assert watch.look(at(40, 12.0), SURE) == {
        "threshold": "policy_entropy",
        "limit": 1e-3,
        "value": 1e-9,
        "avg_reward": 12.0,
        "episode": 40,
        "stopped": False,
    }
    assert watch.look(at(50, 9.4), SURE) is None


def test_half_of_what_was_gained_is_enough_and_less_is_not() -> None:
    watch = CollapseWatch()
    for episode, mean in ((10, -200.0), (20, -100.0)):
        assert watch.look(at(episode, mean), {"entropy": 0.5}) is None
    assert watch.look(at(30, -149.0), SURE) is None
    assert watch.look(at(40, -150.0), SURE) is not None


def test_a_policy_that_is_sure_of_what_it_has_learned_has_not_collapsed() -> None:
    watch = CollapseWatch()
    assert watch.look(at(10, 20.0), {"entropy": 0.69}) is None
    assert watch.look(at(20, 400.0), SURE) is None
    # Nor one that succeeded from the start.
    assert CollapseWatch().look(at(10, 1.0, success_rate=1.0), SURE) is None


@pytest.mark.parametrize(("kind", "watched"), [("discrete", True), ("text", True), ("box", False)])
def test_continuous_actions_are_not_watched(kind: str, watched: bool) -> None:
    found = watch_of({"action_space": {"kind": kind}})
    assert (found is not None) is watched


def test_without_a_contract_nothing_is_watched() -> None:
    assert watch_of(None) is None


@pytest.mark.parametrize("algorithm", ["PPO", "GRPO", "A3C", "SLM"])
def test_a_learning_rate_that_hardly_works_is_warned_of(algorithm: str) -> None:
    def warnings(rate: float) -> tuple[str, ...]:
        return validate_training_config(algorithm, 10, 10, {"learning_rate": rate}).warnings

    assert warnings(1.0) == ()
    (told,) = warnings(1e30)
    assert "learning_rate 1e+30" in told
