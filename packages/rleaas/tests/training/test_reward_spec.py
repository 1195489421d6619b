from pathlib import Path

import pytest
from rlcore import ConfigurationError, ExpressionError
from rleaas.training.rewards.spec import read_reward_file, validate_reward_fn, validate_verifiers

CODE = "def reward(observation, action, reward, info):\n    return reward * 2\n"


@pytest.mark.parametrize(
    "value",
    [
        "reward - 0.1 * abs(observation[0])",
        " reward = reward * 2 ",
        {"inline": "reward = reward * 2"},
        {"type": "inline", "value": "reward if terminated else 0", "path": "ignored.py"},
        {"path": " ", "inline": "1 - action"},
    ],
)
def test_expressions_in_every_published_form_are_read(value: object) -> None:
    spec = validate_reward_fn(value, allow_code=False)

    assert spec is not None
    assert (spec.is_code, spec.path) == (False, None)
    assert validate_reward_fn(spec.to_json()) == spec


@pytest.mark.parametrize(
    "value",
    [
        CODE,
        {"inline": CODE},
        {"type": "path", "value": "rewards/finsim_reward.py", "source": CODE},
        {"path": "rewards/finsim_reward.py", "source": CODE},
        "import math\ndef shaped(*, step=0, **more): return math.exp(-step)",
    ],
)
def test_functions_are_read_and_not_run(value: object) -> None:
    spec = validate_reward_fn(value)

    assert spec is not None
    assert spec.is_code
    assert validate_reward_fn(spec.to_json()) == spec
    with pytest.raises(ConfigurationError) as caught:
        validate_reward_fn(value, allow_code=False)
    assert caught.value.code == "code_not_allowed"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("", "must not be empty"),
        ({}, "must have one of 'path' and 'inline'"),
        ({"path": "a.py", "inline": "1"}, "must have one of 'path' and 'inline'"),
        (["a"], "must be a text"),
        (3, "must be a text"),
        ("rewards/a.py", "the text of 'rewards/a.py' did not come with the request"),
        ({"path": "a.py", "source": "x = 1"}, "a.py has 0 functions"),
        ({"path": "a.py", "source": "def a(): 1\ndef b(): 2"}, "none is named 'reward'"),
        ({"path": "a.py", "source": "def reward(:"}, "a.py, line 1 is no Python"),
        ({"path": "a.py", "source": "def reward(obs): return 1"}, "asks for 'obs'"),
        ({"path": "a.py", "source": "def reward(reward, /): return 1"}, "without names"),
        ("def reward(x\x00): pass", "is no Python"),
    ],
)
def test_what_is_no_reward_function_is_refused(value: object, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        validate_reward_fn(value)


def test_an_expression_that_is_wrong_is_refused_with_a_caret() -> None:
    with pytest.raises(ExpressionError, match="Did you mean 'reward'") as caught:
        validate_reward_fn("1 + rewrad")
    assert caught.value.position == 4
    with pytest.raises(ExpressionError, match="expected a value"):
        validate_reward_fn("reward +")


def test_a_file_travels_with_its_text(tmp_path: Path) -> None:
    file = tmp_path / "finsim_reward.py"
    file.write_text(CODE)

    spec = validate_reward_fn(read_reward_file(file))

    assert spec is not None
    assert (spec.text, spec.function) == (CODE, "reward")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_reward_file(tmp_path / "gone.py")


def test_a_path_alone_is_a_reference_where_no_text_is_needed() -> None:
    spec = validate_reward_fn("rewards/a.py", need_source=False)

    assert spec is not None
    assert spec.to_json() == {"type": "path", "value": "rewards/a.py"}


@pytest.mark.parametrize(
    ("ids", "weights", "found"),
    [
        (None, None, {}),
        ([], None, {}),
        (["a", "b"], None, {"a": 1.0, "b": 1.0}),
        (["a", "b"], {"b": 0.5}, {"a": 1.0, "b": 0.5}),
        (["a", "b"], [2, 3], {"a": 2.0, "b": 3.0}),
    ],
)
def test_verifiers_have_the_weights_that_are_given(
    ids: object, weights: object, found: dict[str, float]
) -> None:
    assert validate_verifiers(ids, weights) == found


@pytest.mark.parametrize(
    ("ids", "weights", "said"),
    [
        ("a", None, "must be a list of ids"),
        (["a", "a"], None, "each verifier once"),
        (["abc"], {"abd": 1}, "Did you mean 'abc'"),
        (["a"], [1, 2], "a weight for each of 1 ids"),
        (["a"], {"a": 0}, "must be above 0"),
        (["a"], {"a": float("inf")}, "must be a finite number"),
        (None, {"a": 1}, "needs verifier_ids"),
    ],
)
def test_weights_that_fit_no_verifier_are_refused(ids: object, weights: object, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        validate_verifiers(ids, weights)
