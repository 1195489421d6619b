"""What a server answers about lanes, request by request, as published clients ask."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from rlmesh.protocol.faults import FaultCode
from rlmesh.protocol.handshake import VECTORS
from rlmesh.protocol.messages import Refused, Request, ResetAnswer, StepAnswer
from rlmesh.server.codecs import Codecs
from rlmesh.server.conversation import Conversation
from rlmesh.server.environments import environments_of
from rlmesh.server.vectors import LaneSet
from rlmesh.specs import AutoresetMode as Mode


class Countdown(gymnasium.Env[Any, Any]):
    """An episode has as many steps as its action space says; a step gives the reward 1."""

    observation_space = spaces.Box(-100, 100, (1,), np.float32)
    action_space = spaces.Discrete(5)

    def __init__(self, length: int) -> None:
        self.length = length
        self.steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        self.steps = 0
        return np.array([0], np.float32), {"fresh": True}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        over = self.steps == self.length
        info = {"is_success": True} if over else {}
        return np.array([self.steps], np.float32), 1.0, over, False, info


class Talk:
    """A conversation, with the ids of its episodes counted up."""

    def __init__(self, source: object, capabilities: Sequence[str] = ()) -> None:
        environments = environments_of(source, close_at_end=True)
        self.codecs = Codecs(environments)
        self.lanes = environments.contract.num_envs
        self.conversation = Conversation(
            environments, self.codecs, on_close=lambda _: None, capabilities=capabilities
        )

    def ask(self, kind: Any, **fields: Any) -> tuple[Any, bool]:
        answer, over = self.conversation.answer(Request(kind, "1", **fields))
        return answer, over

    def reset(self, **fields: Any) -> ResetAnswer:
        fields.setdefault("episode_ids", [f"first {lane}" for lane in range(self.lanes)])
        answer, _ = self.ask("reset", **fields)
        assert isinstance(answer, ResetAnswer), answer
        return answer

    def step(self, word: str = "first", lanes: Sequence[int] = ()) -> StepAnswer:
        answer, _ = self.try_step(word, lanes)
        assert isinstance(answer, StepAnswer), answer
        return answer

    def try_step(self, word: str = "first", lanes: Sequence[int] = ()) -> tuple[Any, bool]:
        named = lanes or range(self.lanes)
        action = self.codecs.actions.encode([0] * len(named), len(named))
        ids = [f"{word} {lane}" for lane in named]
        return self.ask("step", action=action, lanes=lanes, episode_ids=ids)

    def observed(self, answer: Any, lanes: int | None = None) -> list[float]:
        values = self.codecs.observations.decode(answer.leaves, lanes or self.lanes)
        return [float(value) for value in values[:, 0]]


def completed(answer: StepAnswer) -> list[tuple[str, int, int, float, object]]:
    return [
        (one.episode.episode_id, one.episode.lane, one.episode.steps, one.episode.reward, info)
        for one in answer.completed
        for info in [None if one.final_info is None else dict(one.final_info)]
    ]


def makers() -> list[Any]:
    return [partial(Countdown, 2), partial(Countdown, 3)]


@pytest.fixture(params=["lanes", "vector"])
def source(request: pytest.FixtureRequest) -> Any:
    """Two lanes of two and three steps, in the mode that is asked for."""

    def make(mode: Mode) -> object:
        if request.param == "lanes":
            return LaneSet([one() for one in makers()], mode)
        return SyncVectorEnv(makers(), autoreset_mode=AutoresetMode(mode.gymnasium_name))

    return make


def test_next_step_rolls_the_ids_and_counts_the_roll_for_nobody(source: Any) -> None:
    talk = Talk(source(Mode.NEXT_STEP))
    talk.reset()
    assert completed(talk.step()) == []
    assert completed(talk.step()) == [("first 0", 0, 2, 2.0, {"is_success": True})]
    third = talk.step("second")
    assert talk.observed(third) == [0.0, 3.0]
    assert list(third.rewards) == [0.0, 1.0]
    assert completed(third) == [("first 1", 1, 3, 3.0, {"is_success": True})]
    talk.step("third")
    assert completed(talk.step("fourth")) == [("second 0", 0, 2, 2.0, {"is_success": True})]


def test_same_step_gives_the_next_episode_the_id_of_the_next_step(source: Any) -> None:
    talk = Talk(source(Mode.SAME_STEP))
    talk.reset()
    talk.step()
    second = talk.step()
    assert talk.observed(second) == [0.0, 2.0]
    assert completed(second) == [("first 0", 0, 2, 2.0, {"is_success": True})]
    assert completed(talk.step("second")) == [("first 1", 1, 3, 3.0, {"is_success": True})]
    assert completed(talk.step("third")) == [("second 0", 0, 2, 2.0, {"is_success": True})]


def test_disabled_reports_an_episode_once_and_starts_none(source: Any) -> None:
    talk = Talk(source(Mode.DISABLED))
    talk.reset()
    talk.step()
    assert completed(talk.step()) == [("first 0", 0, 2, 2.0, {"is_success": True})]
    reset = talk.reset(options={"reset_mask": [True, False]}, episode_ids=["second 0", "first 1"])
    assert talk.observed(reset) == [0.0, 2.0]
    assert completed(talk.step()) == [("first 1", 1, 3, 3.0, {"is_success": True})]


def test_a_reset_over_running_episodes_reports_them_with_the_next_step(source: Any) -> None:
    talk = Talk(source(Mode.DISABLED))
    talk.reset()
    talk.step()
    talk.reset(episode_ids=["second 0", "second 1"])
    assert completed(talk.step("second")) == [
        ("first 0", 0, 1, 1.0, None),
        ("first 1", 1, 1, 1.0, None),
    ]


def test_episodes_that_run_at_the_end_are_told_with_the_goodbye(source: Any) -> None:
    talk = Talk(source(Mode.DISABLED))
    talk.reset()
    talk.step()
    closed, over = talk.ask("close")
    assert over
    assert [(one.episode_id, one.truncated) for one in closed.episodes] == [
        ("first 0", True),
        ("first 1", True),
    ]


@pytest.mark.parametrize("seeds", [[1, 2, 3], [2**63 - 1]])
def test_seeds_that_are_not_one_for_each_lane_are_refused(source: Any, seeds: list[int]) -> None:
    talk = Talk(source(Mode.DISABLED))
    refused, over = talk.ask("reset", seeds=seeds)
    assert (refused.fault.code, refused.fault.recoverable, over) == (
        FaultCode.INVALID_ACTION,
        True,
        False,
    )


def test_single_lanes_of_a_list_are_stepped_and_reset_by_themselves() -> None:
    talk = Talk([one() for one in makers()])
    talk.reset(lanes=[1], episode_ids=["alone"], seeds=[4])
    step = talk.step("alone", lanes=[1])
    assert talk.observed(step, 1) == [1.0]
    assert list(step.lanes) == [1]
    refused, over = talk.try_step(lanes=[0])
    assert (refused.fault.code, over) == (FaultCode.NOT_READY, False)
    both = talk.reset(lanes=[1, 0], episode_ids=["b", "a"])
    assert both.info == {"final_info": [{"fresh": True}] * 2, "_final_info": [True, True]}
    assert completed(talk.step("x", lanes=[0])) == [("alone", 1, 1, 1.0, None)]
    assert completed(talk.step("x", lanes=[1])) == []
    assert completed(talk.step("x", lanes=[0])) == [("a", 0, 2, 2.0, {"is_success": True})]


@pytest.mark.parametrize("lanes", [[0, 0], [2], [5, 1]])
def test_lanes_that_are_not_there_or_named_twice_are_refused(source: Any, lanes: list[int]) -> None:
    talk = Talk(source(Mode.DISABLED))
    talk.reset()
    for kind in ("reset", "step"):
        refused, over = talk.ask(kind, lanes=lanes, action=[b"\0" * 16])
        assert isinstance(refused, Refused)
        assert (refused.fault.code, refused.fault.recoverable) == (FaultCode.INVALID_ACTION, True)
        assert not over


def test_a_vector_environment_steps_all_lanes_or_none() -> None:
    talk = Talk(SyncVectorEnv(makers()))
    talk.reset()
    refused, over = talk.try_step(lanes=[1])
    assert (refused.fault.code, refused.fault.recoverable, over) == (
        FaultCode.UNSUPPORTED,
        True,
        False,
    )
    assert len(talk.step(lanes=[0, 1]).rewards) == 2


def test_a_lane_that_fails_alone_leaves_the_others_running() -> None:
    envs = [one() for one in makers()]
    talk = Talk(envs)
    talk.reset()
    envs[1].step = int
    refused, over = talk.try_step(lanes=[1])
    assert (refused.fault.recoverable, over) == (False, False)
    assert [one.episode_id for one in refused.interrupted] == ["first 1"]
    assert talk.observed(talk.step(lanes=[0]), 1) == [1.0]
    again, _ = talk.try_step(lanes=[1])
    assert again.fault.code == FaultCode.NOT_READY


def test_infos_are_in_rows_for_published_clients_and_in_columns_for_ours() -> None:
    rows = Talk([one() for one in makers()])
    assert rows.reset().info == {"final_info": [{"fresh": True}] * 2, "_final_info": [True] * 2}
    rows.step()
    assert rows.step().info == {
        "final_info": [{"is_success": True}, {}],
        "_final_info": [True, False],
    }
    columns = Talk([one() for one in makers()], (VECTORS,))
    np.testing.assert_equal(
        columns.reset().info, {"fresh": np.array([True] * 2), "_fresh": np.array([True] * 2)}
    )


class Unkept(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Says that it resets lanes in the step after their episodes, and goes on instead."""

    num_envs = 2
    single_observation_space = spaces.Box(-1, 1, (1,), np.float32)
    single_action_space = spaces.Discrete(5)

    def __init__(self, given: Any = None) -> None:
        self.given = given
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros((2, 1), np.float32), {}

    def step(self, actions: Any) -> Any:
        if self.given is not None:
            return self.given
        return np.zeros((2, 1), np.float32), np.ones(2), np.ones(2, bool), np.zeros(2, bool), {}


def test_an_environment_that_does_not_reset_as_it_says_is_found_out() -> None:
    talk = Talk(Unkept())
    talk.reset()
    talk.step()
    refused, over = talk.try_step()
    assert over
    assert "in lane 0 that step gave the reward 1.0" in refused.fault.message


NO_OUTCOMES: list[tuple[Any, str]] = [
    (7, "not (observations, rewards, terminated, truncated, infos) of 2 lanes"),
    ((np.zeros((2, 1)), [1.0], [True] * 2, [False] * 2, {}), "rewards has the shape (1,)"),
    ((np.zeros((2, 1)), [1.0] * 2, [1, 0], [False] * 2, {}), "terminated is int64"),
    ((np.zeros((2, 1)), [1.0] * 2, [True] * 2, [False] * 2, [1]), "infos must be a dict"),
    (
        (np.zeros((2, 1)), [0.0, np.nan], [True] * 2, [False] * 2, {}),
        "reward is nan in lane 1",
    ),
    ((np.zeros((3, 1)), [0.0] * 2, [True] * 2, [False] * 2, {}), "2"),
]


@pytest.mark.parametrize(("given", "message"), NO_OUTCOMES)
def test_what_is_no_outcome_of_all_lanes_ends_the_session(given: Any, message: str) -> None:
    talk = Talk(Unkept(given))
    talk.reset()
    refused, over = talk.try_step()
    assert over
    assert message in refused.fault.message


def test_an_object_of_nobodys_class_is_served_by_its_attributes() -> None:
    class Mine:
        num_envs = 2
        single_observation_space = spaces.Box(-1, 1, (1,), np.float32)
        single_action_space = spaces.Discrete(5)

        def __init__(self) -> None:
            self.seeds: list[Any] = []

        def reset(self, **arguments: Any) -> Any:
            self.seeds.append(arguments.get("seed"))
            return np.zeros((2, 1), np.float32), {}

        def step(self, actions: Any) -> Any:
            return np.zeros((2, 1)), [1.0, 2.0], [False] * 2, np.array([False, True]), {"x": [3, 4]}

        def close(self) -> None: ...

    mine = Mine()
    talk = Talk(mine)
    talk.reset(seeds=[5])
    talk.reset(seeds=[5, 6])
    assert mine.seeds == [5, [5, 6]]
    assert completed(talk.step())[-1] == ("first 1", 1, 1, 2.0, {"x": 4})
    refused, _ = talk.ask("reset", lanes=[0], episode_ids=["a"])
    assert refused.fault.code == FaultCode.UNSUPPORTED
