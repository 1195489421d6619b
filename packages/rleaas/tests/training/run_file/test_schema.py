"""The JSON Schema of config.json says what the check says."""

import json
import os
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from rleaas.training.config import COMMON
from rleaas.training.hyperparameters import HYPERPARAMETERS
from rleaas.training.run_file.reading import read_text
from rleaas.training.run_file.schema import config_schema

from .seed import CONFIG

Draft202012Validator: Any = import_module("jsonschema").Draft202012Validator  # without types
VALIDATOR: Any = Draft202012Validator(config_schema())
PUBLISHED = "config.schema.json"

PLAIN: list[object] = [
    *(
        None,
        True,
        False,
        -1,
        0,
        1,
        2,
        8,
        100,
        2**33,
        -0.5,
        0.5,
        1.5,
    ),  # to a schema, 2.0 is an integer
    *("", " ", "a", "a,b", " ppo ", "PPO", "DQN", "auto", "MlpPolicy", "linear", "initial"),
    *([], [64], [64, -1], ["a"], [""], ["a", None]),
    {},
]
REWARDS: list[object] = [
    *("r.py", "reward * 2", {"path": "r.py"}, {"inline": "reward"}),
    *({"path": "a", "inline": "b"}, {"path": "", "inline": "b"}, {"path": 3, "inline": "b"}),
    *({"type": "path", "value": "a", "x": 1}, {"type": "x", "value": "a"}, {"file": "a"}),
]
SIMULATIONS: list[object] = [
    *({"speed": 1.5, "seed": 4}, {"speed": 0}, {"seed": -1}, {"sed": 1}),
    {"episode_settings": {"num_episodes": 5, "max_steps": 3}},
    *({"episode_settings": {"num_episodes": 0}}, {"episode_settings": {"x": 1}}),
]
OBJECTS: list[object] = [{"max_wall_seconds": 5}, {"max_timesteps": 0}, {"r": 4, "alpha": 0}]
ENTRY: dict[str, list[object]] = {
    "training": [1, "a", "a,b", " ", None, 1.5],
    "environment_name": ["E", " ", None],
    "reward_fn": REWARDS,
    "simulation": SIMULATIONS,
}
KEYS = [
    *("training", "environment_name", "name", "description", "agent_id", "scenario_id"),
    *("verifier_ids", "algorithm", "max_steps", "episodes", "reward_fn", "simulation"),
    *("resume_from_checkpoint", "priority", "foreign"),
]
INSIDE = [
    *(*COMMON, *HYPERPARAMETERS, "n_envs", "algorithm", "episodes", "num_episodes", "max_steps"),
    *("max_steps_per_episode", "reward_fn", "foreign"),
]


def value_of(key: str) -> st.SearchStrategy[object]:
    return st.sampled_from([*ENTRY.get(key, ()), *PLAIN, *OBJECTS])


def some(keys: list[str], most: int) -> st.SearchStrategy[dict[str, object]]:
    chosen = st.lists(st.sampled_from(keys), max_size=most, unique=True)
    return chosen.flatmap(
        lambda names: st.fixed_dictionaries({one: value_of(one) for one in names})
    )


def refused(document: object) -> bool:
    valid: bool = VALIDATOR.is_valid(document)
    return not valid


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(some(KEYS, 3), some(INSIDE, 3), st.booleans())
def test_the_schema_and_the_check_refuse_the_same_files(
    entry: dict[str, object], config: dict[str, object], nested: bool
) -> None:
    told: dict[str, object] = {"training": 1, "environment_name": "E", **entry}
    if nested:
        told["config"] = config
    document = {"training": [told]}

    errors = read_text(json.dumps(document)).errors

    # What several settings must be together is beyond a schema, as it says itself.
    assume(not errors or any(one.path != "training[0].config" for one in errors) or nested is False)
    assert refused(document) == bool(errors), [str(one) for one in errors]


def test_every_algorithm_has_its_own_keys() -> None:
    def with_algorithm(**entry: object) -> bool:
        document = {"training": [{"training": 1, "environment_name": "E", **entry}]}
        assert refused(document) == bool(read_text(json.dumps(document)).errors)
        return not refused(document)

    assert with_algorithm(config={"clip_range": 0.2})
    assert not with_algorithm(config={"buffer_size": 100})
    assert with_algorithm(algorithm="ppo", config={"clip_range": 0.2})
    assert not with_algorithm(algorithm="ppo", config={"buffer_size": 100, "algorithm": "DQN"})
    assert with_algorithm(config={"algorithm": "PPO", "n_epochs": 3})


def test_the_schema_is_one_and_takes_the_published_example() -> None:
    Draft202012Validator.check_schema(config_schema())

    assert list(VALIDATOR.iter_errors(json.loads(CONFIG))) == []


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        {"training": {}},
        {"training": []},
        {"training": [{"training": 1}]},
        {"training": [{"environment_name": "E"}]},
        {"training": [{"training": 1, "environment_name": "E", "episods": 3}]},
        {"training": [{"training": 1, "environment_name": "E", "config": {"gama": 0.9}}]},
    ],
)
def test_bad_files_are_refused_by_both(document: Any) -> None:
    assert refused(document)
    assert read_text(json.dumps(document)).errors


def test_the_schema_in_the_package_is_the_one_of_the_tables() -> None:
    """After a change of the tables: RLEAAS_RECORD_EXAMPLES=1 writes it anew."""
    place = files("rleaas.training.run_file") / PUBLISHED
    text = json.dumps(config_schema(), indent=1) + "\n"
    if os.environ.get("RLEAAS_RECORD_EXAMPLES"):
        Path(str(place)).write_text(text)

    assert place.read_text() == text


def test_every_setting_says_what_it_is_for() -> None:
    schema: Any = config_schema()
    entry = schema["properties"]["training"]["items"]
    inside = entry["properties"]["config"]["anyOf"][0]["properties"]
    assert all(one["description"] for one in (*entry["properties"].values(), *inside.values()))
