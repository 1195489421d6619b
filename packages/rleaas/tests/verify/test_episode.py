import numpy as np
import pytest
from rleaas.verify import EpisodeRecorder, Trajectory
from rleaas.verify.episode import action_names


def played(
    *steps: tuple[object, dict[str, object]], names: dict[int, str] | None = None
) -> Trajectory:
    recorder = EpisodeRecorder(action_names=names)
    recorder.begin({})
    for action, info in steps:
        recorder.step(action, np.zeros(2, dtype=np.float32), 1.0, info)
    return recorder.trajectory()


@pytest.mark.parametrize(
    ("action", "info"),
    [
        (0, {"tool_calls": ["wire"]}),
        (0, {"tool_calls": [{"tool": "wire", "arguments": {"amount": 5}}]}),
        (0, {"tool_name": "wire", "tool_arguments": {"amount": 5}, "tool_result": {"ok": True}}),
        (0, {"tool": "wire"}),
        ('{"tool": "wire", "arguments": {"amount": 5}}', {}),
        ('{"name": "wire", "amount": 5}', {}),
        ('{"tool_calls": ["wire"]}', {}),
        (np.int64(1), {}),
        (np.array(1), {}),
    ],
)
def test_a_steps_tool_is_found_where_the_environment_tells_it(
    action: object, info: dict[str, object]
) -> None:
    assert played((action, info), names={0: "kyc", 1: "wire"}).tool_calls == ("wire",)


@pytest.mark.parametrize("action", ["wire", "{not json", '{"x": 1}', "[" * 100_000, "3", None, 7])
def test_an_action_that_names_no_tool_calls_none(action: object) -> None:
    assert played((action, {})).tool_calls == ()


def test_names_of_actions_begin_at_the_spaces_first() -> None:
    assert action_names({"action_names": ["a", "b"]}, 3) == {3: "a", 4: "b"}
    assert action_names({"action_names": {"0": "a", "5": "b"}}) == {0: "a", 5: "b"}
    assert action_names({}) == {}


def test_the_state_is_what_the_last_info_tells() -> None:
    said = played((0, {"state": {"balance": np.float32(2.5)}, "noise": 1}))
    flat = played((0, {"balance": np.int64(2), "tool_calls": ["a"], "odd": object()}))

    assert said.state == {"balance": 2.5}
    assert flat.state == {"balance": 2}


def test_arrays_become_lists_only_where_a_verifier_may_look_at_them() -> None:
    (seen,) = played((np.array([1.0, 2.0]), {"a": 1})).steps
    recorder = EpisodeRecorder(observations=False)
    recorder.begin({})
    recorder.step(0, np.zeros(10**7), 1.0, {"a": 1}, truncated=True)
    unseen = recorder.trajectory()

    assert (seen.observation, seen.action, seen.info) == ([0.0, 0.0], [1.0, 2.0], {"a": 1})
    assert (unseen.steps[0].observation, unseen.truncated) == (None, True)
