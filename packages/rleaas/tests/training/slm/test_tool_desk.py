import json

import pytest
from gymnasium.utils.env_checker import check_env
from rlcore import ConfigurationError
from rleaas.training.slm.language import LANGUAGE, read_language
from rleaas.training.slm.tool_desk import ToolDeskEnv


def call(tool: str, **arguments: object) -> str:
    return json.dumps({"tool": tool, "arguments": arguments})


def price(observation: str) -> int:
    return int(observation.removeprefix('{"price": {"is": ').removesuffix("}}"))


def test_two_look_ups_a_sum_and_its_answer_succeed_in_every_episode() -> None:
    env = ToolDeskEnv(things=2)
    for seed in range(20):
        task, _ = env.reset(seed=seed)
        items = [part.split('"')[0] for part in task.split('"item": "')[1:]]
        earned = 0.0
        found: list[int] = []
        for item in items:
            observation, reward, *_ = env.step(call("lookup", item=item))
            found.append(price(observation))
            earned += reward
        observation, reward, *_ = env.step(call("add", a=found[0], b=found[1]))
        assert price(observation) == sum(found)
        _, answered, terminated, truncated, info = env.step(call("answer", value=sum(found)))

        assert earned + reward + answered == pytest.approx(1.6)
        assert (terminated, truncated, info["is_success"]) == (True, False, True)


def test_a_lucky_guess_is_no_success() -> None:
    env = ToolDeskEnv(things=1)
    for value in range(1, 6):
        env.reset(seed=3)
        observation, reward, terminated, _, info = env.step(call("answer", value=value))

        assert observation == '{"result": "not so"}'
        assert (reward, terminated, info) == (0.02, False, {})


@pytest.mark.parametrize(
    "action",
    ["", "lookup pear", "[]", '"x"', "{}", call("lookup"), call("answer", value=True), "[" * 200],
)
def test_what_is_no_call_is_answered_and_earns_nothing(action: str) -> None:
    env = ToolDeskEnv()
    env.reset(seed=0)

    observation, reward, terminated, truncated, info = env.step(action)

    assert observation == '{"result": "not a call"}'
    assert (reward, terminated, truncated, info) == (0.0, False, False, {})


def test_an_episode_ends_unsuccessfully_two_calls_after_it_could_have_succeeded() -> None:
    env = ToolDeskEnv(things=1)
    env.reset(seed=0)
    ends = [env.step(call("lookup", item="nothing"))[3:] for _ in range(4)]

    assert ends == [(False, {})] * 3 + [(True, {"is_success": False})]


def test_every_call_of_the_language_is_in_the_space_and_understood() -> None:
    env = ToolDeskEnv(things=2)
    language = read_language(env.metadata[LANGUAGE], "metadata")
    heads = [piece for piece in language.pieces if piece.startswith("{")]

    understood = 0
    for head in heads[:2]:
        for end in language.ends:
            env.reset(seed=1)
            assert env.action_space.contains(head + end)
            understood += "not a call" not in env.step(head + end)[0]

    # All 14 can be looked up, although ten are not there; ten are numbers to answer.
    assert understood == 14 + 10
    assert all(env.observation_space.contains(text) for text in language.texts)


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_gymnasium_finds_nothing_wrong_with_it() -> None:
    check_env(ToolDeskEnv(), skip_render_check=True)


def test_other_numbers_of_things_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="things must be 1 or 2, got 3"):
        ToolDeskEnv(things=3)
