"""All that is wrong with a config.json is found at once, and where it is."""

import json
import os
from pathlib import Path

import pytest
from rlcore import ConfigurationError
from rleaas.training.run_file.reading import RunFile, read_file, read_text

from .seed import CONFIG


def one(**entry: object) -> RunFile:
    return read_text(json.dumps({"training": [{"training": 1, "environment_name": "E", **entry}]}))


def errors(file: RunFile) -> dict[str, str]:
    return {problem.path: problem.message for problem in file.errors}


def test_the_published_example_asks_for_what_it_says() -> None:
    file = read_text(CONFIG)

    assert (file.errors, file.warnings) == ([], [])
    first = file.runs[0]
    assert [run.id for run in file.runs] == [1, 2]
    assert (first.environment_name, first.algorithm) == ("Demo-FinSim-Env-aks-Demo", "PPO")
    assert (first.agent_id, first.scenario_id, first.verifier_ids) == (None, None, ())
    assert first.settings == {
        "episodes": 500,
        "max_steps": 200,
        "learning_rate": 0.0003,
        "batch_size": 128,
        "checkpoint_interval": 100,
        "description": "PPO training run for FinSim baseline.",
        "simulation": {
            "speed": 1.5,
            "seed": 42,
            "episode_settings": {"num_episodes": 500, "max_steps": 200},
        },
        "reward_fn": {"path": "rewards/finsim_reward.py"},
    }


# defect: L-6
def test_all_errors_are_found_at_once_each_where_it_is() -> None:
    text = """{
  "training": [
    {"training": 1, "environment_name": "E", "algorithm": "PPPO", "max_steps": 0},
    {"training": "1", "environment_nam": "E"},
    {"environment_name": "E", "simulation": {"speed": -1, "episode_settings": {"max_steps": "x"}}},
    {"training": 3, "environment_name": "E", "config": {"learning_rat": 0.1, "gamma": 3}},
    7
  ]
}"""

    found = [(str(one.at.line), one.at.column, one.path) for one in read_text(text).errors]

    assert found == [
        ("3", 59, "training[0].algorithm"),
        ("3", 80, "training[0].max_steps"),
        ("4", 5, "training[1].environment_name"),
        ("4", 18, "training[1].training"),
        ("4", 23, "training[1].environment_nam"),
        ("5", 5, "training[2].training"),
        ("5", 55, "training[2].simulation.speed"),
        ("5", 93, "training[2].simulation.episode_settings.max_steps"),
        ("6", 57, "training[3].config.learning_rat"),
        ("6", 87, "training[3].config.gamma"),
        ("7", 5, "training[4]"),
    ]


def test_an_unknown_key_is_refused_with_the_nearest_known_one() -> None:
    file = one(episods=3, config={"learning_rat": 0.1})

    assert {problem.path: problem.hint for problem in file.errors} == {
        "training[0].episods": "Did you mean 'episodes'?",
        "training[0].config.learning_rat": "Did you mean 'learning_rate'?",
    }


# defect: L-5
def test_the_entrys_own_key_overrules_the_nested_one_and_says_so() -> None:
    file = one(
        max_steps=50,
        algorithm="ppo",
        config={"max_steps_per_episode": 9, "episodes": 7, "algorithm": "PPO", "seed": 1},
        simulation={"seed": 2, "episode_settings": {"num_episodes": 8, "max_steps": 50}},
    )

    assert file.errors == []
    settings = file.runs[0].settings
    assert (settings["max_steps"], settings["episodes"]) == (50, 7)
    assert "seed" not in settings
    assert "algorithm" not in settings
    assert {problem.path for problem in file.warnings} == {
        "training[0].config.max_steps_per_episode",
        "training[0].simulation.episode_settings.num_episodes",
        "training[0].config.seed",
    }
    assert all("has no effect" in problem.message for problem in file.warnings)


def test_what_is_left_out_or_null_has_the_published_default() -> None:
    file = one(algorithm=None, config=None, simulation=None, name=None, verifier_ids=None)

    (run,) = file.runs
    assert (run.algorithm, run.name) == ("PPO", None)
    assert run.settings == {"episodes": 100, "max_steps": 200}


@pytest.mark.parametrize(
    ("reward", "meant"),
    [
        ("rewards/a.py", {"path": "rewards/a.py"}),
        ("reward * 2", {"inline": "reward * 2"}),
        ({"path": " a.py "}, {"path": "a.py"}),
        ({"path": "", "inline": "reward"}, {"inline": "reward"}),
        ({"type": "path", "value": "a.py", "inline": "x"}, {"path": "a.py"}),
    ],
)
def test_each_published_form_of_a_reward_function_is_read(reward: object, meant: object) -> None:
    from rleaas.training.run_file.reward import check_reward

    assert check_reward("reward_fn", reward) == meant


@pytest.mark.parametrize("reward", ["", 3, [], {}, {"path": "a", "inline": "b"}, {"file": "a"}])
def test_other_forms_are_refused(reward: object) -> None:
    assert "training[0].reward_fn" in " ".join(errors(one(reward_fn=reward)))


def test_the_file_of_a_reward_function_lies_beside_the_config(tmp_path: Path) -> None:
    (tmp_path / "sub" / "rewards").mkdir(parents=True)
    reward = tmp_path / "sub" / "rewards" / "r.py"
    reward.write_text("def reward(step): return 1.0\n")
    entry = {"training": 1, "environment_name": "E", "reward_fn": "rewards/r.py"}
    config = tmp_path / "sub" / "config.json"
    config.write_text(json.dumps({"training": [entry]}))

    (run,) = read_file(config).runs
    reward.unlink()

    assert run.settings["reward_fn"] == {"path": str(reward)}
    assert "there is no file" in errors(read_file(config))["training[0].reward_fn"]


def test_a_file_that_is_no_config_is_refused_where_it_shows(tmp_path: Path) -> None:
    broken = read_text('{"training": [\n  {"training": 1,}\n]}')
    latin = tmp_path / "config.json"
    latin.write_bytes('{"training":\n "é"}'.encode("latin-1"))

    assert [str(one) for one in broken.errors] == [
        "2:18: no JSON: a comma before '}' is one too many"
    ]
    assert [str(one) for one in read_file(latin).errors] == ["2:3: the file is not UTF-8"]
    assert errors(read_text("[]")) == {"": 'must be an object: {"training": [ … ]}'}
    assert errors(read_text("{}")) == {"training": "is missing"}
    assert errors(read_text('{"training": {}}')) == {"training": "must be a list of entries"}
    assert errors(read_text('{"training": []}')) == {"training": "has no entries"}
    with pytest.raises(ConfigurationError, match="cannot read the config file"):
        read_file(tmp_path / "none.json")


def test_a_key_of_the_server_is_kept_secret_and_foreign_keys_are_warned_of() -> None:
    file = read_text(
        '{"api_key": "rleaas_sk_1", "base_url": "http://h:1/", "trainings": 1, "training": []}'
    )

    assert "rleaas_sk_1" not in repr(file)
    assert file.api_key is not None
    assert (file.api_key.reveal(), file.base_url) == ("rleaas_sk_1", "http://h:1")
    assert [one.hint for one in file.warnings] == ["Did you mean 'training'?"]


@pytest.mark.parametrize(
    ("text", "path", "column"),
    [
        (r'{"training": 1, "environment_name": "\ud800"}', "training[0].environment_name", 51),
        (r'{"training": 1, "environment_name": "E\u0000"}', "training[0].environment_name", 51),
        (
            r'{"training": 1, "environment_name": "E", "config": {"description": "\udc00"}}',
            "training[0].config.description",
            82,
        ),
        (
            r'{"training": 1, "environment_name": "E", "verifier_ids": ["a", "\u0000"]}',
            "training[0].verifier_ids[1]",
            78,
        ),
    ],
)
def test_texts_that_no_server_takes_are_refused_where_they_are(
    text: str, path: str, column: int
) -> None:
    (problem,) = read_text(f'{{"training":  [{text}]}}').errors

    assert (problem.path, problem.at.line, problem.at.column) == (path, 1, column + 1)
    assert problem.message.startswith("holds ")


def test_a_pair_of_surrogates_is_a_character() -> None:
    text = r'{"training": [{"training": "\ud83d\ude80", "environment_name": "E"}]}'

    file = read_text(text)

    assert (file.errors, file.runs[0].id) == ([], "\U0001f680")


def test_a_named_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "config.json"
    os.mkfifo(pipe)

    for path in (pipe, "/dev/zero"):
        with pytest.raises(ConfigurationError, match="is no regular file"):
            read_file(path)


def test_a_number_of_thousands_of_digits_is_called_too_long() -> None:
    text = '{"training": [{"training": 1, "max_steps": ' + "7" * 5000 + "}]}"

    (problem,) = read_text(text).errors

    assert str(problem) == "1:44: no JSON: a number is too long: more than 4300 digits"


@pytest.mark.parametrize(
    ("key", "value", "argument"),
    [
        ("priority", 5, "priority="),
        ("scenario_id", "s", "scenario_suite_id="),
        ("verifier_ids", ["v"], "verifier_ids="),
        ("agent_id", "a", "agent_id="),
        ("name", "n", "name="),
        ("resume_from_checkpoint", "c", "resume_from_checkpoint="),
    ],
)
def test_what_belongs_beside_the_config_is_sent_there_by_name(
    key: str, value: object, argument: str
) -> None:
    (problem,) = one(config={"gamma": 0.9, key: value}).errors

    assert problem.path == f"training[0].config.{key}"
    assert f"beside the config: {argument} of TrainingJob.run" in str(problem.hint)
    assert "key of the entry itself" in str(problem.hint)
