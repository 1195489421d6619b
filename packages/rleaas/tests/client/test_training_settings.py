from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from rlcore import ConfigurationError, ExpressionError
from rleaas.testing import converse, reply
from rleaas.training import validate_simulation

from .test_training import client, job

FACTOR = 2.0
NAMELESS: Callable[[float], float] = lambda reward: reward  # noqa: E731 - what is refused


def doubled(reward: float, info: dict[str, Any]) -> float:
    return reward * 2


def scaled(reward: float) -> float:
    return reward * FACTOR


def sent(**arguments: Any) -> dict[str, Any]:
    talk = converse(client().run("E", **arguments), [reply(job())])
    return cast("dict[str, Any]", talk.requests[0].json)


def test_what_is_said_beside_the_config_is_in_the_config_that_is_sent() -> None:
    body = sent(
        learning_rate=0.1,
        n_envs=3,
        curriculum={"enabled": True},
        compute_quota={"max_timesteps": 9},
        description="why",
        config={"gamma": 0.9, "num_envs": 3},
    )

    assert body["config"] == {
        "gamma": 0.9,
        "num_envs": 3,
        "learning_rate": 0.1,
        "curriculum": {"enabled": True},
        "compute_quota": {"max_timesteps": 9},
        "description": "why",
    }


def test_verifiers_weights_scenario_and_priority_are_beside_the_config() -> None:
    body = sent(
        verifier_ids=["v1", "v2"], verifier_weights={"v1": 2.0}, scenario_suite_id="s", priority=-5
    )

    assert (body["verifier_ids"], body["verifier_weights"]) == (["v1", "v2"], {"v1": 2.0})
    assert (body["scenario_id"], body["priority"]) == ("s", -5)


@pytest.mark.parametrize(
    "arguments",
    [
        {"learning_rate": 0.1, "config": {"learning_rate": 0.2}},
        {"num_envs": 2, "n_envs": 3},
        {"config": {"num_envs": 2, "n_envs": 3}},
        {"max_steps": 5, "config": {"max_steps_per_episode": 6}},
    ],
)
def test_two_ways_that_contradict_each_other_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="contradicts"):
        converse(client().run("E", **arguments), [])


def test_the_text_of_a_reward_file_goes_with_the_job(tmp_path: Path) -> None:
    file = tmp_path / "score.py"
    file.write_text("def reward(reward):\n    return -reward\n")

    for told in (str(file), {"path": str(file)}, {"type": "path", "value": f" {file} "}):
        found = sent(reward_fn=told)["config"]["reward_fn"]
        assert found == {"type": "path", "value": str(file), "source": file.read_text()}


def test_a_function_goes_as_its_source() -> None:
    found = sent(reward_fn=doubled)["config"]["reward_fn"]

    assert found["type"] == "inline"
    assert found["value"].startswith("def doubled(reward: float")


@pytest.mark.parametrize(
    ("reward", "complaint"),
    [
        (scaled, "uses FACTOR from around it"),
        (NAMELESS, "no plain function"),
        (len, "cannot be taken"),
        ("no/such/file.py", "cannot be read"),
        ("reward +", "reward_fn|expected|ends"),
        ("rewart * 2", "Did you mean 'reward'"),
        ({"path": "a.py", "inline": "reward"}, "no reward function"),
        (dict[str, str](), "no reward function"),
        (7, "no reward function"),
        ("  ", "no reward function"),
    ],
)
def test_what_cannot_be_a_reward_is_refused_before_anything_is_sent(
    reward: Any, complaint: str
) -> None:
    with pytest.raises((ConfigurationError, ExpressionError), match=complaint):
        converse(client().run("E", reward_fn=reward), [])


@pytest.mark.parametrize(
    ("told", "form"),
    [
        (" rewards/a.py ", "rewards/a.py"),
        ({"type": " path ", "value": " a.py ", "path": "b.py"}, {"type": "path", "value": "a.py"}),
        ({"type": "other", "value": "x", "inline": " 1 "}, {"inline": "1"}),
        ({"path": "a.py", "inline": " ", "more": 1}, {"path": "a.py"}),
    ],
)
def test_a_reward_has_one_of_its_published_forms(told: Any, form: object) -> None:
    assert client().configure_training(reward_fn=told)["reward_fn"] == form


def test_configure_training_puts_its_arguments_over_the_config() -> None:
    config = {"algorithm": "SAC", "max_steps": 5, "gamma": 0.5}

    found = client().configure_training("ppo", 9, config=config, learning_rate=0.1, num_envs=2)

    assert found == {
        "gamma": 0.5,
        "learning_rate": 0.1,
        "num_envs": 2,
        "algorithm": "PPO",
        "max_steps": 9,
    }
    assert config == {"algorithm": "SAC", "max_steps": 5, "gamma": 0.5}


# The validation table of the published client.
@pytest.mark.parametrize(
    "simulation",
    [
        5,
        {"speed": 0},
        {"speed": True},
        {"seed": -1},
        {"seed": True},
        {"episode_settings": []},
        {"episode_settings": {"num_episodes": 1.0}},
        {"episode_settings": {"max_steps": None}},
    ],
)
def test_a_simulation_that_published_clients_refuse_is_refused(simulation: Any) -> None:
    with pytest.raises(ValueError, match="simulation"):
        client().configure_training(simulation=simulation)


def test_keys_of_a_simulation_that_nobody_knows_here_are_the_platform_s() -> None:
    simulation = {"speed": 1.5, "weather": "rain"}

    assert client().configure_training(simulation=simulation)["simulation"] == simulation
    assert validate_simulation(simulation).speed == 1.5


def test_the_algorithm_of_the_config_holds_where_no_other_is_said() -> None:
    made = client().configure_training(algorithm="DQN")

    assert sent(config=made)["algorithm"] == "DQN"
    assert sent(config=made, algorithm="dqn")["algorithm"] == "DQN"
    assert sent()["algorithm"] == "PPO"


def test_two_algorithms_are_refused_also_where_one_is_the_default_said_aloud() -> None:
    with pytest.raises(ConfigurationError, match=r"'PPO' contradicts config\.algorithm 'DQN'"):
        sent(algorithm="PPO", config={"algorithm": "DQN"})
