"""A model bound to a run: what is kept where, and what a bad answer is told."""

from __future__ import annotations

import threading
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
from rlcore import ConfigurationError, InvalidActionError
from rlmesh.models.answers import PredictionError, summary
from rlmesh.models.context import PredictContext
from rlmesh.models.live_episodes import EpisodeCapacityError, LiveEpisodes, capacity, live_episodes
from rlmesh.models.local_policy import ENV_TAGS_KEY, LocalPolicy
from rlmesh.models.model import ModelTypeError
from rlmesh.models.policy import policy_for

jax: Any = typed_jax  # Any: checkers cannot read the types of most of jax
NumpyModel = rlmesh.numpy.Model
OBSERVATION = np.array([1.0, 2.0], np.float32)
ACTION = np.zeros(1, np.float32)


class Closing(NumpyModel):
    closed = 0

    def predict(self, observation: Any) -> Any:
        return ACTION

    def close(self) -> None:
        type(self).closed += 1


def test_a_class_is_made_and_closed_by_the_policy_and_an_instance_is_not() -> None:
    policy = policy_for(Closing)
    policy.close()
    policy.close()
    assert Closing.closed == 1

    policy_for(Closing()).close()
    assert Closing.closed == 1


def test_a_class_is_closed_when_it_cannot_be_driven_as_asked() -> None:
    class Short(NumpyModel):
        native_chunk = 2
        closed = False

        def predict_chunk(self, observation: Any, horizon: int) -> Any: ...

        def close(self) -> None:
            type(self).closed = True

    with pytest.raises(ValueError, match="hold 2"):
        policy_for(Short, execution_horizon=3)
    assert Short.closed


def test_what_has_a_policy_of_its_own_makes_it() -> None:
    class Remote:
        def policy(self, **options: Any) -> Any:
            return options

    made: Any = policy_for(Remote(), execution_horizon=2, instruction="go")
    assert made == {
        "execution_horizon": 2,
        "prefetch_lead": 0,
        "instruction": "go",
    }


@pytest.mark.parametrize("model", [max, object(), None, "random", int])
def test_what_is_no_model_is_refused_and_told_how_to_become_one(model: object) -> None:
    with pytest.raises(ModelTypeError, match="wrap it"):
        policy_for(model)


@pytest.mark.parametrize("horizon", [0, -1, 1025, 1.5, True, "2", None])
def test_a_horizon_is_a_whole_number_up_to_1024(horizon: Any) -> None:
    with pytest.raises(ConfigurationError, match="execution_horizon is"):
        policy_for(NumpyModel(max), execution_horizon=horizon)


def test_a_lead_is_not_negative_and_not_for_samples() -> None:
    with pytest.raises(ConfigurationError, match="prefetch_lead is -1"):
        policy_for(NumpyModel(max), prefetch_lead=-1)
    with pytest.raises(ConfigurationError, match="RANDOM_SAMPLE predicts no chunks"):
        policy_for(rlmesh.RANDOM_SAMPLE, prefetch_lead=1)


@pytest.mark.parametrize("model", [rlmesh.RANDOM_SAMPLE, NumpyModel(max), Closing])
def test_an_instruction_without_a_place_is_told_to_have_no_effect(model: Any) -> None:
    with pytest.warns(UserWarning, match="instruction='go' has no effect"):
        policy_for(model, instruction="go")


def test_two_runs_of_one_model_share_nothing(contract: Any) -> None:
    def act(observation: Any, context: PredictContext) -> Any:
        context["state"]["seen"] = context["state"].get("seen", 0) + 1
        told.append((context["episode_id"], context["predict_index"], context["state"]["seen"]))
        return ACTION

    told: list[Any] = []
    ended: list[str] = []
    model = NumpyModel(act, on_episode_end=ended.append)
    first, second = policy_for(model), policy_for(model)
    for policy in (first, second):
        policy.bind(contract(), num_envs=1)
    one, two = first.begin("same", 1), second.begin("same", 2)
    for _ in range(2):
        first.predict(OBSERVATION, one)
        second.predict(OBSERVATION, two)
    first.end(one)
    second.end(one)  # not one of its own

    assert told == [("same", 0, 1), ("same", 0, 1), ("same", 1, 2), ("same", 1, 2)]
    assert ended == ["same"]


def test_an_episode_ends_once_and_stays_open_until_then() -> None:
    ended: list[str] = []
    before = live_episodes().count
    policy = policy_for(NumpyModel(max, on_episode_end=ended.append))
    episode, forgotten = policy.begin("a", None), policy.begin("b", None)
    assert live_episodes().count == before + 2

    policy.end(episode)
    policy.end(episode)
    assert ended == ["a"]
    policy.close()
    policy.end(forgotten)
    assert ended == ["a"]
    assert live_episodes().count == before


def test_no_more_episodes_are_open_than_there_may_be() -> None:
    episodes = LiveEpisodes(2)
    threads = [threading.Thread(target=episodes.open) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with pytest.raises(EpisodeCapacityError, match="RLMESH_EPISODE_CAPACITY") as caught:
        episodes.open()
    assert isinstance(caught.value, RuntimeError)
    episodes.end()
    episodes.open()


def test_the_capacity_is_the_published_one_unless_the_variable_says_more() -> None:
    assert capacity(None) == 65_536
    assert capacity("3") == 3
    for text in ("0", "-1", "many", "1.5"):
        with pytest.raises(ConfigurationError, match="RLMESH_EPISODE_CAPACITY"):
            capacity(text)


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no words for it")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no array either")


@pytest.mark.parametrize(
    ("action", "what"),
    [
        (np.array([np.nan], np.float32), "NaN"),
        ([float("nan")], "NaN"),
        (torch.tensor([float("nan")]), "NaN"),
        (None, "not numbers"),
        (np.zeros(2, np.float32), r"shape \[2\]"),
        ("left", "not numbers"),
        ({"move": 1}, "not numbers"),
        (Hostile(), "not an array"),
        (np.array([1e300]), "cannot hold"),
    ],
)
def test_a_bad_answer_is_the_model_s_and_says_where_and_what(
    contract: Any, action: Any, what: str
) -> None:
    policy = policy_for(NumpyModel(lambda observation: action, name="mine"))
    policy.bind(contract(), num_envs=1)
    episode = policy.begin("e1", 5)

    with pytest.raises(PredictionError, match=what) as caught:
        policy.predict(OBSERVATION, episode)

    error = caught.value
    assert isinstance(error, InvalidActionError)
    assert "the model 'mine' answered" in str(error)
    assert "not the environment" in str(error)
    assert (error.model, error.environment, error.seed, error.step) == ("mine", "Made-v0", 5, 1)
    assert (error.episode_id, error.observation) == ("e1", "float32[2]")
    assert error.space == "Box(-9.0, 9.0, (1,), float32)"


@pytest.mark.parametrize(
    ("space", "good", "bad"),
    [
        (
            spaces.Discrete(3, start=1),
            [1, 3, np.int64(2), np.array(2), 2.0, torch.tensor(3)],
            [0, 4, 1.5, None],
        ),
        (
            spaces.Box(0, 9, (2, 2), np.float64),
            [np.zeros((2, 2)), [[1, 2], [3, 4]]],
            [np.full((2, 2), np.nan), 1],
        ),
        (spaces.Box(0, 9, (2,), np.uint8), [np.zeros(2, np.uint8), [1, 2]], [[1.5, 2], [300, 1]]),
        (spaces.MultiDiscrete([2, 3]), [[1, 2]], [[2, 0], [1]]),
        (spaces.Dict({"a": spaces.Discrete(2)}), [{"a": 1}], [{"a": 2}, {}, 1]),
        (
            spaces.Box(-np.inf, np.inf, (2,), np.float32),
            [np.array([np.inf, -np.inf], np.float32)],
            [[np.nan, 0]],
        ),
    ],
)
def test_every_kind_of_space_tells_good_answers_from_bad_ones(
    contract: Any, space: Any, good: list[Any], bad: list[Any]
) -> None:
    answers: list[Any] = []
    policy = policy_for(NumpyModel(lambda observation: answers[-1]))
    policy.bind(contract(acted=space), num_envs=1)
    episode = policy.begin("e", 0)
    for answer in good:
        answers.append(answer)
        assert policy.predict(OBSERVATION, episode) is answer
    for answer in bad:
        answers.append(answer)
        with pytest.raises(PredictionError):
            policy.predict(OBSERVATION, episode)


def test_without_a_contract_only_no_answer_at_all_is_refused() -> None:
    answers: list[Any] = ["anything", None]
    policy = policy_for(NumpyModel(lambda observation: answers.pop(0)))
    policy.bind(None, num_envs=1)
    episode = policy.begin("e", 0)

    assert policy.predict(OBSERVATION, episode) == "anything"
    with pytest.raises(PredictionError, match="it is None"):
        policy.predict(OBSERVATION, episode)


def test_what_a_model_raises_says_what_it_was_given(contract: Any) -> None:
    def act(observation: Any) -> Any:
        raise LookupError("lost")

    policy = policy_for(NumpyModel(act, name="mine"))
    policy.bind(contract(), num_envs=1)
    with pytest.raises(LookupError) as caught:
        policy.predict({"a": OBSERVATION, "b": (1, ["x"] * 9)}, policy.begin("e", 0))
    shown = ", ".join(["str"] * 8)
    assert caught.value.__notes__ == [
        f"mine was predicting for {{'a': float32[2], 'b': (int, [{shown}, ...])}}"
    ]
    assert summary(torch.zeros(2, 3)) == "torch.float32[2, 3]"


def test_a_tagged_environment_needs_a_word_on_adapters(contract: Any) -> None:
    tagged = contract(metadata={ENV_TAGS_KEY: {}})
    with pytest.raises(ConfigurationError, match="NO_ADAPTER"):
        policy_for(NumpyModel(max)).bind(tagged, num_envs=1)
    policy_for(NumpyModel(max, spec=rlmesh.NO_ADAPTER)).bind(tagged, num_envs=1)


BATCH = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)


def test_lanes_share_one_call_of_a_model_that_predicts_batches(contract: Any) -> None:
    calls: list[Any] = []

    class Batched(NumpyModel):
        def predict_batch(self, observations: Any, contexts: list[PredictContext]) -> Any:
            calls.append((observations, [context["episode_seed"] for context in contexts]))
            return observations[:, :1]

    policy = policy_for(Batched())
    policy.bind(contract(), num_envs=2)
    lanes = [policy.begin("a", 1), policy.begin("b", 2)]

    answer: Any = policy.predict_batch(BATCH, lanes)

    assert answer.tolist() == [[1], [3]]
    assert len(calls) == 1
    assert calls[0][1] == [1, 2]
    assert calls[0][0] is BATCH


def test_a_model_without_batches_is_asked_for_each_lane_with_its_own_context(contract: Any) -> None:
    def act(observation: Any, context: PredictContext) -> Any:
        context["state"]["count"] = context["state"].get("count", 0) + observation[0]
        return [context["state"]["count"]]

    policy = policy_for(NumpyModel(act))
    policy.bind(contract(), num_envs=2)
    lanes = [policy.begin("a", 1), policy.begin("b", 2)]
    policy.predict_batch(BATCH, lanes)

    assert policy.predict_batch(BATCH, lanes) == [[2.0], [6.0]]


def test_a_bad_batch_names_the_lane(contract: Any) -> None:
    class Batched(NumpyModel):
        def predict_batch(self, observations: Any) -> Any:
            return answers.pop(0)

    answers: list[Any] = [np.array([[0], [np.nan]], np.float32), None, [[0]]]
    policy = policy_for(Batched())
    policy.bind(contract(), num_envs=2)
    lanes = [policy.begin("a", 1), policy.begin("b", 2)]
    for what in ("in lane 1", "it is None", "has 1 lanes"):
        with pytest.raises(PredictionError, match=what):
            policy.predict_batch(BATCH, lanes)


def test_a_batch_of_every_kind_of_space_comes_apart_into_lanes(contract: Any) -> None:
    seen: list[Any] = []

    def act(observation: Any) -> Any:
        seen.append(observation)
        return ACTION

    class Batched(NumpyModel):
        def predict_batch(self, observations: Any) -> Any:
            seen.append(observations)
            return [ACTION, ACTION]

    space = spaces.Dict(
        {
            "x": spaces.Box(-9, 9, (1,), np.float32),
            "n": spaces.Discrete(9),
            "t": spaces.Text(5),
            "p": spaces.Tuple([spaces.Discrete(3), spaces.Text(5)]),
        }
    )
    batch = {
        "x": np.array([[1], [2]], np.float32),
        "n": np.array([3, 4]),
        "t": ("a", "b"),
        "p": (np.array([0, 1]), ("c", "d")),
    }
    for model in (NumpyModel(act), Batched()):
        policy = policy_for(model)
        policy.bind(contract(observed=space), num_envs=2)
        policy.predict_batch(batch, [policy.begin("a", 1), policy.begin("b", 2)])

    assert [(each["x"].tolist(), each["n"], each["t"], each["p"]) for each in seen[:2]] == [
        ([1], 3, "a", (0, "c")),
        ([2], 4, "b", (1, "d")),
    ]
    assert type(seen[0]["n"]) is int
    assert (seen[2]["t"], seen[2]["p"][1]) == (["a", "b"], ["c", "d"])


@pytest.mark.parametrize(
    ("module", "kind"), [(rlmesh.torch, torch.Tensor), (rlmesh.jax, jax.Array), (rlmesh, list)]
)
def test_batches_are_of_the_model_s_framework(contract: Any, module: Any, kind: type) -> None:
    seen: list[Any] = []

    def act(_: Any, observations: Any) -> Any:
        seen.append(observations)
        if kind is list:
            return [np.asarray(each)[:1] for each in observations]
        return observations[:, :1]

    batched = type("Batched", (module.Model,), {"predict_batch": act})
    policy = policy_for(batched())
    policy.bind(contract(), num_envs=2)
    lanes = [policy.begin("a", 1), policy.begin("b", 2)]
    answer: Any = policy.predict_batch(BATCH, lanes)
    single: Any = policy.predict(BATCH[1], lanes[0])

    assert isinstance(seen[0], kind)
    assert np.asarray(answer).tolist() == [[1], [3]]
    assert np.asarray(single).tolist() == [3]


def test_single_observations_share_a_call_where_they_may(contract: Any) -> None:
    calls: list[int] = []

    class Batched(NumpyModel):
        def predict_batch(self, observations: Any) -> Any:
            calls.append(len(observations))
            return observations[:, :1]

    policy = policy_for(Batched())
    assert isinstance(policy, LocalPolicy)
    policy.bind(contract(), num_envs=1)
    episodes = [policy.begin("a", 1), policy.begin("b", 2)]
    actions: Any = policy.predict_each(list(BATCH), episodes)

    assert [action.tolist() for action in actions] == [[1], [3]]
    assert calls == [2]
    assert policy.fuses
    policy.model.allow_fusion = False
    assert not policy.fuses


def test_samples_follow_from_the_seed_of_each_episode_however_episodes_interleave(
    contract: Any,
) -> None:
    def played(order: list[int]) -> dict[int, list[Any]]:
        policy = policy_for(rlmesh.RANDOM_SAMPLE)
        policy.bind(contract(acted=spaces.Discrete(1000)), num_envs=1)
        episodes = {seed: policy.begin(str(seed), seed) for seed in set(order)}
        actions: dict[int, list[Any]] = {seed: [] for seed in episodes}
        for seed in order:
            actions[seed].append(policy.predict(None, episodes[seed]))
        for episode in episodes.values():
            policy.end(episode)
        policy.close()
        return actions

    assert played([1, 1, 2, 2]) == played([2, 1, 2, 1])
    assert played([1, 1]) != played([3, 3])


def test_samples_of_lanes_are_those_of_single_episodes(contract: Any) -> None:
    policy = policy_for(rlmesh.RANDOM_SAMPLE)
    policy.bind(contract(), num_envs=2)
    lanes: Any = policy.predict_batch(BATCH, [policy.begin("a", 1), policy.begin("b", 2)])
    singles: Any = [policy.predict(None, policy.begin("c", seed)) for seed in (1, 2)]

    assert np.array_equal(lanes, singles)
    assert lanes[0].dtype == np.float32


def test_samples_need_a_space_that_can_be_described() -> None:
    policy = policy_for(rlmesh.RANDOM_SAMPLE)
    with pytest.raises(ConfigurationError, match="has no space"):
        policy.predict(None, policy.begin("a", 1))
    policy.bind(None, num_envs=1, action_space=spaces.Discrete(3))
    assert policy.predict(None, policy.begin("a", 1)) in (0, 1, 2)
    with pytest.raises(ConfigurationError, match="cannot sample"):
        policy.bind(None, num_envs=1, action_space=object())


INFINITE: list[tuple[Any, Any]] = [
    (spaces.Box(-1, 1, (2,), np.float32), np.array([0, np.inf], np.float32)),
    (spaces.Box(-1, 1, (1, 2), np.float64), np.array([[0, -np.inf]])),
    (spaces.Box(-np.inf, 1, (2,), np.float32), np.array([-np.inf, np.inf], np.float32)),
    (
        spaces.Dict(a=spaces.Tuple([spaces.Discrete(2), spaces.Box(0, 1, (1,), np.float32)])),
        {"a": (1, np.array([np.inf], np.float32))},
    ),
]


@pytest.mark.parametrize(("space", "action"), INFINITE)
def test_an_infinite_action_is_none_where_the_space_has_bounds(
    contract: Any, space: Any, action: Any
) -> None:
    policy = policy_for(NumpyModel(lambda observation: action))
    policy.bind(contract(acted=space), num_envs=2)
    episode = policy.begin("a", 1)
    with pytest.raises(PredictionError, match="has infinities"):
        policy.predict(OBSERVATION, episode)
    with pytest.raises(PredictionError, match="has infinities"):
        policy.predict_batch(np.stack([OBSERVATION, OBSERVATION]), [episode, episode])
    policy.close()


@pytest.mark.parametrize(
    ("space", "action"),
    [
        (spaces.Box(-1, 1, (2,), np.float32), np.array([3e38, -5], np.float32)),
        (spaces.Box(-np.inf, 1, (2,), np.float32), np.array([-np.inf, 0], np.float32)),
    ],
)
def test_finite_numbers_beyond_the_bounds_are_left_to_the_environment(
    contract: Any, space: Any, action: Any
) -> None:
    policy = policy_for(NumpyModel(lambda observation: action))
    policy.bind(contract(acted=space), num_envs=1)
    assert policy.predict(OBSERVATION, policy.begin("a", 1)) is action
    policy.close()
