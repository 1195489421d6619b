# Nested strategies have no type that could be written down.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlcore import ConfigurationError
from rleaas.training.algorithms import ALGORITHMS, SUPPORTED_ALGORITHMS
from rleaas.training.config import TrainingConfig, validate_training_config
from rleaas.training.simulation import validate_simulation

UNIT = st.floats(0, 1)
POSITIVE = st.floats(1e-9, 1e9)
COUNTS = st.integers(1, 10**6)
CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        "learning_rate": POSITIVE,
        "learning_rate_schedule": st.sampled_from(["constant", "linear"]),
        "n_epochs": st.integers(1, 10_000),
        "gamma": UNIT,
        "gae_lambda": UNIT,
        "ent_coef": st.floats(0, 1e3),
        "net_arch": st.lists(st.integers(1, 4096), min_size=1, max_size=8),
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
    if name in ALGORITHMS:
        assert check({}, asked).algorithm == name
    else:
        with pytest.raises(ConfigurationError, match=r"Use .*PPO") as caught:
            check({}, asked)
        assert caught.value.code == "algorithm_unavailable"


@pytest.mark.parametrize("algorithm", ["PPOO", "", None, 3])
def test_an_unknown_algorithm_is_refused(algorithm: object) -> None:
    with pytest.raises(ConfigurationError, match="algorithm"):
        check({}, algorithm)


def test_an_algorithm_with_a_typo_is_named_with_the_nearest() -> None:
    with pytest.raises(ConfigurationError) as caught:
        check({}, "pp")
    assert caught.value.hint == "Did you mean 'PPO'?"


@pytest.mark.parametrize("algorithm", ["PPO", "P" * 1_000_000])
def test_a_refusal_does_not_repeat_megabytes(algorithm: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check({"x" * 1_000_000: 1}, algorithm)
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("value", [1.0, "5", True, 0, -1])
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
@pytest.mark.parametrize(
    "config",
    [
        {"reward_fn": "reward * 2"},
        {"reward_fn": {"inline": "def reward(reward):\n    return -reward\n"}},
        {"reward_fn": {"path": "a.py", "source": "def reward(info):\n    return 1.0\n"}},
        {"curriculum": {"tier_1_mastery_threshold": 0.5}},
        {"verifier_weights": {"v1": 2}},
        {"verifier_weights": [1, 2]},
        {"verifier_config": {"type": "human-evaluation"}},
    ],
)
def test_rewards_and_tiers_survive_being_stored_and_sent(config: dict[str, object]) -> None:
    checked = check(config)

    assert checked != check({})
    assert check(json.loads(json.dumps(checked.to_config()))) == checked


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"reward_fn": "rewart"}, "'reward'"),
        ({"reward_fn": {"path": "a.py"}}, "did not come with the request"),
        ({"curriculum": {"windw": 3}}, "'window'"),
        ({"verifier_weights": {"v1": 0}}, "verifier_weights['v1']"),
        ({"verifier_config": {"type": "rule_based"}}, "verifier_ids"),
        ({"verifier_config": {"type": "human_evaluation", "x": 1}}, "'x'"),
    ],
)
def test_rewards_and_tiers_that_cannot_be_are_refused(config: dict[str, object], said: str) -> None:
    assert said in str(refusal(config))


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
    [("algorithm", "SAC"), ("episodes", 99), ("max_steps", 7), ("max_steps_per_episode", 9)],
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


# defect: L-5
@pytest.mark.parametrize(
    ("told", "config", "holds"),
    [
        (None, {}, 100),
        (None, {"simulation": {"episode_settings": {"num_episodes": 7}}}, 7),
        (None, {"episodes": 8}, 8),
        (9, {}, 9),
        (9, {"num_episodes": 9}, 9),
    ],
)
def test_episodes_are_what_is_said_first(told: object, config: Any, holds: int) -> None:
    checked = validate_training_config("PPO", told, None, config)

    assert (checked.num_episodes, checked.max_steps, checked.warnings) == (holds, 1000, ())


# defect: L-5
@pytest.mark.parametrize(
    ("told", "config"),
    [(200, {"max_steps_per_episode": 20}), (None, {"max_steps_per_episode": 20, "max_steps": 5})],
)
def test_two_numbers_for_one_thing_are_refused(told: object, config: Any) -> None:
    with pytest.raises(ConfigurationError, match="contradicts"):
        validate_training_config("PPO", None, told, config)


# defect: L-5
def test_episode_settings_that_are_not_used_are_told() -> None:
    inside = {"episode_settings": {"num_episodes": 5, "max_steps": 6}, "seed": 1}

    checked = check({"simulation": inside, "seed": 2})

    assert (checked.num_episodes, checked.max_steps, checked.effective_seed) == (100, 1000, 2)
    assert len(checked.warnings) == 3
    assert "num_episodes 5 is not used: num_episodes 100 holds" in checked.warnings[0]


def test_n_envs_is_another_name_of_num_envs() -> None:
    assert check({"n_envs": 3}).num_envs == 3
    assert check({"n_envs": 3, "num_envs": 3}).to_config() == {"num_envs": 3}
    assert "contradicts" in str(refusal({"n_envs": 3, "num_envs": 4}))


def test_a_setting_of_another_algorithm_is_refused_with_those_that_there_are() -> None:
    error = refusal({"temperature": 1.0})

    assert error.code == "foreign_config_key"
    assert "PPO takes batch_size, clip_range" in str(error)


def test_more_workers_than_processes_are_refused() -> None:
    quota = {"max_processes": 3}

    assert check({"compute_quota": quota}).spare_processes(8) == 2
    assert check({}).spare_processes(8) == 8
    error = refusal({"compute_quota": quota, "rollout_workers": 3})
    assert "rollout_workers 3 and the process that they belong to" in error.message


@pytest.mark.parametrize("where", ["simulation", "simulation.episode_settings", "compute_quota"])
def test_a_typo_is_named_at_every_level(where: str) -> None:
    config: dict[str, Any] = {}
    inner = config
    for name in where.split("."):
        inner[name] = {}
        inner = inner[name]
    typo, meant = {
        "simulation": ("sped", "speed"),
        "simulation.episode_settings": ("max_stepz", "max_steps"),
        "compute_quota": ("max_timestep", "max_timesteps"),
    }[where]
    inner[typo] = 1

    error = refusal(config)

    assert (error.code, error.hint) == ("unknown_config_key", f"Did you mean {meant!r}?")


def test_a_client_leaves_unknown_settings_of_a_simulation_to_the_platform() -> None:
    assert validate_simulation({"speed": 2, "weather": "rain"}).speed == 2


def test_the_seed_of_the_simulation_is_the_jobs_unless_it_has_its_own() -> None:
    assert check({"simulation": {"seed": 5}}).effective_seed == 5
    assert check({"simulation": {"seed": 5}, "seed": 6}).effective_seed == 6


@pytest.mark.parametrize(
    ("algorithm", "config"),
    [
        ("PPO", {"net_arch": [30_000, 30_000]}),
        ("PPO", {"net_arch": [64] * 9}),
        ("PPO", {"n_steps": 10**9}),
        ("PPO", {"batch_size": 257}),
        ("PPO", {"batch_size": 65, "n_steps": 16, "num_envs": 4}),
        ("PPO", {"ent_coef": "auto"}),
        ("DQN", {"buffer_size": 10**8}),
        ("DQN", {"buffer_size": 63}),
        ("DQN", {"learning_starts": 10**9}),
        ("DQN", {"learning_starts": 50}),
    ],
)
def test_sizes_of_which_no_training_could_come_are_refused(
    algorithm: str, config: dict[str, object]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        validate_training_config(algorithm, 10, 5, config)

    assert caught.value.code == "invalid_training_config"
    assert next(iter(config)) in caught.value.message


def test_the_largest_sizes_that_fit_are_taken() -> None:
    validate_training_config("PPO", 10, 5, {"batch_size": 256, "net_arch": [4096] * 8})
    validate_training_config("DQN", 10, 5, {"buffer_size": 128, "learning_starts": 49})


@pytest.mark.parametrize("key", ["learning_rate", "ent_coef", "max_grad_norm", "vf_coef"])
def test_a_factor_that_32_bit_floats_cannot_multiply_by_is_refused(key: str) -> None:
    # The largest of them is 3.4e38, and Adam begins by multiplying by ten.
    assert f"{key} must be at most 3e+37" in refusal({key: 1e300}).message


def test_a_text_that_no_list_could_carry_is_refused_by_its_length() -> None:
    assert "at most 20000 characters, got 20001" in refusal({"description": "x" * 20_001}).message
    tracked: dict[str, object] = {"tracking": {"mlflow": {"experiment": "x" * 201}}}
    assert "tracking.mlflow.experiment must have at most 200" in refusal(tracked).message
