# Nested strategies have no type that could be written down.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlcore import ConfigurationError
from rleaas.training.config import (
    SUPPORTED_ALGORITHMS,
    TrainingConfig,
    validate_simulation,
    validate_training_config,
)

UNIT = st.floats(0, 1)
POSITIVE = st.floats(1e-9, 1e9)
COUNTS = st.integers(1, 10**6)
CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        "learning_rate": POSITIVE,
        "learning_rate_schedule": st.sampled_from(["constant", "linear"]),
        "n_epochs": COUNTS,
        "gamma": UNIT,
        "gae_lambda": UNIT,
        "ent_coef": st.floats(0, 1e3),
        "net_arch": st.lists(COUNTS, min_size=1, max_size=4),
        "num_envs": st.integers(1, 64),
        "checkpoint_interval": COUNTS,
        "seed": st.integers(0, 2**32 - 1),
        "target_reward": st.floats(-1e9, 1e9),
        "average_over": st.integers(1, 1000),
        "total_timesteps": COUNTS,
        "step_timeout": st.floats(0.001, 86400),
        "description": st.text(),
        "simulation": st.fixed_dictionaries(
            {},
            optional={
                "speed": POSITIVE,
                "seed": st.integers(0, 2**32 - 1),
                "episode_settings": st.fixed_dictionaries({"num_episodes": COUNTS}),
                "weather": st.text(),
            },
        ),
        "compute_quota": st.fixed_dictionaries({}, optional={"max_timesteps": COUNTS}),
    },
)


def check(config: dict[str, object], algorithm: object = "PPO") -> TrainingConfig:
    return validate_training_config(algorithm, 100, 1000, config)


def refusal(config: dict[str, object]) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        check(config)
    return caught.value


@given(config=CONFIGS)
def test_a_valid_config_survives_being_stored_and_sent(config: dict[str, object]) -> None:
    checked = check(config)

    assert check(json.loads(json.dumps(checked.to_config()))) == checked


@given(name=st.sampled_from(SUPPORTED_ALGORITHMS), blanks=st.sampled_from(["", " ", "\t"]))
def test_only_what_is_built_is_accepted(name: str, blanks: str) -> None:
    asked = blanks + name.lower() + blanks
    if name == "PPO":
        assert check({}, asked).algorithm == "PPO"
    else:
        with pytest.raises(ConfigurationError, match="Use PPO") as caught:
            check({}, asked)
        assert caught.value.code == "algorithm_unavailable"


@pytest.mark.parametrize("algorithm", ["PPOO", "", None, 3])
def test_an_unknown_algorithm_is_refused(algorithm: object) -> None:
    with pytest.raises(ConfigurationError, match="algorithm"):
        check({}, algorithm)


@pytest.mark.parametrize("value", [1.0, "5", True, None, 0, -1])
@pytest.mark.parametrize("field", ["num_episodes", "max_steps"])
def test_episodes_and_steps_are_whole_numbers_above_zero(field: str, value: object) -> None:
    request = {"num_episodes": 1, "max_steps": 1, field: value}

    with pytest.raises(ConfigurationError, match=field):
        validate_training_config("PPO", request["num_episodes"], request["max_steps"], {})


def test_a_typo_is_named_with_the_nearest_key() -> None:
    error = refusal({"learning_rat": 1e-3})

    assert error.code == "unknown_config_key"
    assert "'learning_rat'" in str(error)
    assert "'learning_rate'" in str(error)


def test_a_key_like_no_other_lists_the_valid_ones() -> None:
    assert "checkpoint_interval" in str(refusal({"zzz": 1}))


# defect: A-6
@pytest.mark.parametrize("key", ["reward_fn", "curriculum", "verifier_config"])
def test_what_is_not_built_yet_is_refused(key: str) -> None:
    error = refusal({key: {"type": "inline", "value": "1"}})

    assert error.code == "not_available"
    assert "not built yet" in str(error)


def test_a_curriculum_that_is_switched_off_is_fine() -> None:
    assert check({"curriculum": {"enabled": False}}) == check({})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("learning_rate", 0),
        ("learning_rate", "1e-3"),
        ("learning_rate", float("nan")),
        ("learning_rate", 10**400),
        ("batch_size", 1),
        ("gamma", 1.1),
        ("clip_range", 0),
        ("ent_coef", -1),
        ("net_arch", []),
        ("net_arch", [64, 0]),
        ("net_arch", "64"),
        ("num_envs", 65),
        ("policy", "LstmPolicy"),
        ("seed", -1),
        ("seed", 2**32),
        ("seed", True),
        ("target_reward", float("inf")),
        ("description", 5),
        ("simulation", []),
        ("compute_quota", {"max_wall_seconds": 0}),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(key: str, value: object) -> None:
    assert key in refusal({key: value}).message


def test_a_batch_larger_than_a_rollout_is_refused() -> None:
    assert "batch_size 64" in str(refusal({"batch_size": 64, "n_steps": 8, "num_envs": 4}))


def test_a_typo_inside_the_quota_is_named() -> None:
    assert "'max_timesteps'" in str(refusal({"compute_quota": {"max_timestep": 5}}))


@pytest.mark.parametrize(
    ("key", "value"),
    [("algorithm", "SAC"), ("episodes", 99), ("max_steps", 7), ("max_steps_per_episode", True)],
)
def test_a_repeated_key_must_agree_with_the_request(key: str, value: object) -> None:
    assert "contradicts" in str(refusal({key: value}))


def test_keys_that_published_clients_repeat_are_accepted() -> None:
    assert check({"algorithm": "ppo", "episodes": 100, "max_steps": 1000}) == check({})


# defect: P-10
@pytest.mark.parametrize(
    ("simulation", "field"),
    [
        ({"speed": 0}, "simulation.speed"),
        ({"speed": float("nan")}, "simulation.speed"),
        ({"seed": -1}, "simulation.seed"),
        ({"episode_settings": 5}, "simulation.episode_settings"),
        ({"episode_settings": {"num_episodes": 0}}, "simulation.episode_settings.num_episodes"),
        ({"episode_settings": {"max_steps": "5"}}, "simulation.episode_settings.max_steps"),
    ],
)
def test_a_bad_simulation_field_is_named(simulation: object, field: str) -> None:
    with pytest.raises(ConfigurationError, match=field):
        validate_simulation(simulation)


# defect: P-10
@pytest.mark.parametrize("known", [{}, {"num_episodes": 3}])
def test_an_unknown_episode_setting_is_refused_beside_known_ones_and_alone(
    known: dict[str, int],
) -> None:
    with pytest.raises(ConfigurationError, match="episode_settings") as caught:
        validate_simulation({"episode_settings": {**known, "max_stepz": 1}})
    assert caught.value.hint == "Did you mean 'max_steps'?"


def test_the_seed_of_the_simulation_is_the_jobs_unless_it_has_its_own() -> None:
    assert check({"simulation": {"seed": 5}}).effective_seed == 5
    assert check({"simulation": {"seed": 5}, "seed": 6}).effective_seed == 6
