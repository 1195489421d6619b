"""Actions that come in chunks: replayed, replanned, predicted ahead, for one lane and for many."""

from __future__ import annotations

import logging
import threading
import warnings
from typing import Any

import jax as typed_jax
import numpy as np
import pytest
import rlmesh
import rlmesh.jax
import rlmesh.numpy
import rlmesh.torch
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from rlmesh.models.answers import PredictionError
from rlmesh.models.chunk_policy import ChunkPolicy
from rlmesh.models.chunks import frames_of
from rlmesh.models.context import PredictContext
from rlmesh.models.policy import PolicyEpisode, policy_for

jax: Any = typed_jax  # Any: checkers cannot read the types of most of jax
NumpyModel = rlmesh.numpy.Model


def at(step: int) -> Any:
    """The observation of a step, which tells the step."""
    return np.array([step, 0], np.float32)


class Planner(NumpyModel):
    """Plans the numbers from its observation on; notes when it was asked."""

    length: int | None = None

    def load(self) -> None:
        self.asked: list[tuple[int, int, int]] = []

    def predict_chunk(
        self, observation: Any, execution_horizon: int, context: PredictContext
    ) -> Any:
        self.asked.append((int(observation[0]), execution_horizon, context["predict_index"]))
        count = execution_horizon if self.length is None else self.length
        return (observation[0] + np.arange(count, dtype=np.float32))[:, None]


def played(policy: Any, steps: int, contract: Any) -> tuple[list[float], list[bool]]:
    policy.bind(contract(acted=spaces.Box(-99, 99, (1,), np.float32)), num_envs=1)
    episode = policy.begin("e", 3)
    actions: list[float] = []
    predicted: list[bool] = []
    for step in range(steps):
        actions.append(float(policy.predict(at(step), episode)[0]))
        predicted.append(episode.predicted_now)
    policy.end(episode)
    policy.close()
    return actions, predicted


@pytest.mark.parametrize(
    ("horizon", "lead", "asked"),
    [
        # The observations with which the published package asks, under the same options.
        (4, 0, [0, 4, 8]),
        (4, 1, [0, 2, 6]),
        (4, 2, [0, 1, 5]),
        (4, 5, [0, 0, 4, 8]),
        (1, 0, [0, 1, 2, 3, 4, 5, 6, 7, 8]),
        (1, 2, [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]),
    ],
)
def test_a_chunk_is_asked_for_with_the_published_observation(
    contract: Any, horizon: int, lead: int, asked: list[int]
) -> None:
    model = Planner()
    policy = policy_for(model, execution_horizon=horizon, prefetch_lead=lead)
    played(policy, 9, contract)

    assert [step for step, _, _ in model.asked] == asked
    assert [index for _, _, index in model.asked] == list(range(len(asked)))
    assert {wanted for _, wanted, _ in model.asked} <= {horizon}


def test_actions_are_replayed_and_said_to_be(contract: Any) -> None:
    actions, predicted = played(policy_for(Planner(), execution_horizon=3), 7, contract)

    assert actions == [0, 1, 2, 3, 4, 5, 6]
    assert predicted == [True, False, False, True, False, False, True]


def test_a_lead_without_chunks_is_said_to_have_no_effect_and_has_none(contract: Any) -> None:
    with pytest.warns(UserWarning, match="prefetch_lead=1 has no effect"):
        policy = policy_for(NumpyModel(lambda observation: observation[:1]), prefetch_lead=1)
    assert played(policy, 4, contract)[0] == [0, 1, 2, 3]


def test_a_horizon_without_chunks_is_said_to_have_no_effect() -> None:
    with pytest.warns(UserWarning, match="predicts no chunks"):
        policy = policy_for(NumpyModel(max), execution_horizon=3)
    assert not isinstance(policy, ChunkPolicy)
    with pytest.warns(UserWarning, match="predicts no chunks"):
        policy_for(rlmesh.RANDOM_SAMPLE, execution_horizon=3)


def test_a_short_chunk_is_used_up_and_said_once(contract: Any) -> None:
    model = Planner()
    model.length = 2
    with pytest.warns(RuntimeWarning, match="2 actions where 4") as told:
        actions, _ = played(policy_for(model, execution_horizon=4), 6, contract)

    assert actions == [0, 1, 2, 3, 4, 5]
    assert [step for step, _, _ in model.asked] == [0, 2, 4]
    assert len(told) == 1


def test_of_a_long_chunk_only_the_horizon_is_used(contract: Any) -> None:
    model = Planner()
    model.length = 9
    assert played(policy_for(model, execution_horizon=2), 5, contract)[0] == [0, 1, 2, 3, 4]
    assert [step for step, _, _ in model.asked] == [0, 2, 4]


def test_a_fixed_length_is_held_to(contract: Any) -> None:
    class Fixed(Planner):
        native_chunk = 4

    with pytest.raises(ValueError, match="hold 4"):
        policy_for(Fixed(), execution_horizon=5)
    assert played(policy_for(Fixed(), execution_horizon=4), 5, contract)[0] == [0, 1, 2, 3, 4]
    with pytest.raises(PredictionError, match="holds 2 actions, and native_chunk says 4") as caught:
        played(policy_for(Fixed(), execution_horizon=2), 1, contract)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("chunk", "step"),
    [
        (np.array([[0], [np.nan], [0]]), 2),
        ([], 1),
        ([[0.0], None, [0.0]], 2),
        (np.zeros((3, 2)), 1),
    ],
)
def test_a_bad_chunk_is_refused_before_any_of_it_is_used(
    contract: Any, chunk: Any, step: int
) -> None:
    class Bad(NumpyModel):
        def predict_chunk(self, observation: Any) -> Any:
            return chunk

    policy = policy_for(Bad(), execution_horizon=3)
    policy.bind(contract(), num_envs=1)
    with pytest.raises(PredictionError) as caught:
        policy.predict(at(0), policy.begin("e", 1))
    assert caught.value.step == step


def test_a_new_episode_begins_with_a_new_chunk(contract: Any) -> None:
    model = Planner()
    policy = policy_for(model, execution_horizon=5)
    policy.bind(contract(), num_envs=1)
    first = policy.begin("a", 1)
    policy.predict(at(0), first)
    policy.end(first)
    second = policy.begin("b", 2)
    assert policy.predict(at(7), second) == [7]
    assert not first.queue
    policy.close()


class LanePlanner(NumpyModel):
    """Plans for several lanes at once, as far as the second number of each observation says."""

    def load(self) -> None:
        self.calls: list[list[int]] = []

    def predict_chunk_batch(
        self, observations: Any, execution_horizon: int, contexts: list[PredictContext]
    ) -> Any:
        self.calls.append([context["episode_seed"] or 0 for context in contexts])
        steps = np.arange(execution_horizon, dtype=np.float32)
        return (observations[:, :1] + steps)[:, :, None]


def test_lanes_that_run_out_share_one_prediction(contract: Any) -> None:
    model = LanePlanner()
    policy = policy_for(model, execution_horizon=3)
    policy.bind(contract(acted=spaces.Box(-99, 99, (1,), np.float32)), num_envs=3)
    lanes = [policy.begin(str(seed), seed) for seed in (1, 2, 3)]

    def step(number: int) -> list[float]:
        batch = np.stack([at(number + 10 * lane) for lane in range(3)])
        answer: Any = policy.predict_batch(batch, lanes)
        return [float(action[0]) for action in answer]

    assert step(0) == [0, 10, 20]
    policy.end(lanes[1])
    lanes[1] = policy.begin("new", 9)
    assert step(1) == [1, 11, 21]
    assert [lane.predicted_now for lane in lanes] == [False, True, False]
    assert step(2) == [2, 12, 22]
    assert step(3) == [3, 13, 23]
    assert model.calls == [[1, 2, 3], [9], [1, 3]]


def test_lanes_with_chunks_of_their_own_are_asked_one_by_one(contract: Any) -> None:
    model = Planner()
    policy = policy_for(model, execution_horizon=2)
    policy.bind(contract(acted=spaces.Box(-99, 99, (1,), np.float32)), num_envs=2)
    lanes = [policy.begin("a", 1), policy.begin("b", 2)]
    for number in range(3):
        policy.predict_batch(np.stack([at(number), at(number + 10)]), lanes)

    assert [step for step, _, _ in model.asked] == [0, 10, 2, 12]


@pytest.mark.parametrize("module", [rlmesh.torch, rlmesh.jax])
def test_chunks_of_every_framework_come_apart(contract: Any, module: Any) -> None:
    def plan(_: Any, observations: Any, execution_horizon: int) -> Any:
        stacked: Any = torch.stack if module is rlmesh.torch else jax.numpy.stack
        rows = [observations[:, :1] + step for step in range(execution_horizon)]
        return {"move": stacked(rows, 1)}

    framework = type("Framework", (module.Model,), {"predict_chunk_batch": plan})
    space = spaces.Dict({"move": spaces.Box(-99, 99, (1,), np.float32)})
    policy = policy_for(framework(), execution_horizon=2)
    policy.bind(contract(acted=space), num_envs=2)
    lanes = [policy.begin("a", 1), policy.begin("b", 2)]
    seen: list[Any] = []
    for number in range(3):
        answer: Any = policy.predict_batch(np.stack([at(number), at(number + 10)]), lanes)
        seen.append([float(action["move"][0]) for action in answer])

    assert seen == [[0, 10], [1, 11], [2, 12]]


def test_the_next_chunk_is_predicted_beside_the_environment(contract: Any) -> None:
    asked, go_on = threading.Event(), threading.Event()

    class Slow(Planner):
        def predict_chunk(
            self, observation: Any, execution_horizon: int, context: PredictContext
        ) -> Any:
            if context["predict_index"] == 1:
                asked.set()
                assert go_on.wait(30)
            return super().predict_chunk(observation, execution_horizon, context)

    policy = policy_for(Slow(), execution_horizon=3, prefetch_lead=1)
    policy.bind(contract(), num_envs=1)
    episode = policy.begin("e", 1)
    assert [float(policy.predict(at(step), episode)[0]) for step in range(2)] == [0, 1]  # type: ignore[index]  # an array
    assert asked.wait(30)
    # The environment goes on while the model is busy.
    assert policy.predict(at(2), episode) == [2]
    go_on.set()
    assert policy.predict(at(3), episode) == [1]
    assert episode.predicted_now
    policy.end(episode)
    policy.close()


def test_what_fails_ahead_is_raised_when_it_is_needed(contract: Any) -> None:
    class Failing(Planner):
        def predict_chunk(
            self, observation: Any, execution_horizon: int, context: PredictContext
        ) -> Any:
            if context["predict_index"]:
                raise LookupError("lost the way")
            return super().predict_chunk(observation, execution_horizon, context)

    policy = policy_for(Failing(), execution_horizon=2, prefetch_lead=1)
    policy.bind(contract(), num_envs=1)
    episode = policy.begin("e", 1)
    policy.predict(at(0), episode)
    policy.predict(at(1), episode)
    with pytest.raises(LookupError, match="lost the way") as caught:
        policy.predict(at(2), episode)
    assert "was predicting for float32[2]" in caught.value.__notes__[0]
    policy.close()


def test_what_fails_ahead_for_an_episode_that_is_over_is_logged(
    contract: Any, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(Planner):
        def predict_chunk(
            self, observation: Any, execution_horizon: int, context: PredictContext
        ) -> Any:
            if context["predict_index"]:
                raise LookupError("lost the way")
            return super().predict_chunk(observation, execution_horizon, context)

    ended: list[str] = []
    model = Failing(on_episode_end=ended.append)
    policy = policy_for(model, execution_horizon=2, prefetch_lead=1)
    policy.bind(contract(), num_envs=1)
    episode = policy.begin("e", 1)
    policy.predict(at(0), episode)
    with caplog.at_level(logging.WARNING):
        policy.end(episode)
    policy.close()

    assert "failed while it predicted ahead" in caplog.text
    assert ended == ["e"]


class Script(NumpyModel):
    """Answers with chunks of the lengths that it was given, numbered throughout."""

    def load(self) -> None:
        self.lengths: list[int] = []
        self.used = 0

    def predict_chunk(self, observation: Any) -> Any:
        length = self.lengths.pop(0) if self.lengths else 1
        return np.full((length, 1), self._next(), np.float32)

    def _next(self) -> int:
        self.used += 1
        return self.used


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=20), st.integers(2, 8))
def test_actions_are_the_heads_of_chunks_in_their_order(lengths: list[int], horizon: int) -> None:
    model = Script()
    model.lengths = list(lengths)
    policy = policy_for(model, execution_horizon=horizon)
    policy.bind(None, num_envs=1)
    episode = policy.begin("e", 1)
    expected = [
        number for number, length in enumerate(lengths, 1) for _ in range(min(length, horizon))
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        actions: list[Any] = [policy.predict(at(0), episode) for _ in expected]
    policy.close()

    assert [int(action[0]) for action in actions] == expected
    assert model.used == len(lengths)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 5), st.integers(2, 5), st.data())
def test_lanes_never_mix_whenever_their_episodes_begin(
    lanes: int, horizon: int, data: st.DataObject
) -> None:
    policy = policy_for(LanePlanner(), execution_horizon=horizon)
    policy.bind(None, num_envs=lanes)
    episodes = [policy.begin(str(lane), lane) for lane in range(lanes)]
    base = [100.0 * lane for lane in range(lanes)]
    for step in range(8):
        for lane in range(lanes):
            if data.draw(st.booleans()):
                policy.end(episodes[lane])
                episodes[lane] = policy.begin(f"{lane}.{step}", lane)
        batch = np.array([[base[lane] + step, 0] for lane in range(lanes)], np.float32)
        answer: Any = policy.predict_batch(batch, episodes)
        # Plans count on from what was seen, so they agree with planning anew at each step.
        assert [float(action[0]) for action in answer] == [b + step for b in base]
    policy.close()


@settings(max_examples=40, deadline=None)
@given(
    st.recursive(
        st.integers(1, 6).map(lambda width: ("array", width)),
        lambda inner: st.dictionaries(st.sampled_from("abc"), inner, min_size=1).map(
            lambda fields: ("dict", fields)
        ),
        max_leaves=6,
    ),
    st.integers(1, 7),
)
def test_joining_the_actions_of_a_chunk_gives_the_chunk(shape: Any, length: int) -> None:
    def made(node: Any) -> Any:
        kind, inside = node
        if kind == "dict":
            return {key: made(value) for key, value in inside.items()}
        return np.arange(length * inside, dtype=np.int64).reshape((length, inside))

    def rejoined(node: Any, frames: list[Any]) -> Any:
        kind, inside = node
        if kind == "dict":
            return {
                key: rejoined(value, [frame[key] for frame in frames])
                for key, value in inside.items()
            }
        return np.stack(frames)

    chunk = made(shape)
    frames = frames_of(chunk)
    assert len(frames) == length
    assert repr(rejoined(shape, frames)) == repr(chunk)


def test_an_episode_knows_how_many_actions_were_asked_for(contract: Any) -> None:
    policy = policy_for(Planner(), execution_horizon=3)
    policy.bind(contract(), num_envs=1)
    episode: PolicyEpisode = policy.begin("e", 1)
    for step in range(4):
        policy.predict(at(step), episode)
    assert (episode.steps, episode.predict_index) == (4, 2)
    policy.close()
