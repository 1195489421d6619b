"""Which ways to predict follow from which, and how each callable is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import rlmesh
import rlmesh.numpy
from rlmesh.models.context import EpisodeContext, PredictContext
from rlmesh.models.corners import CORNERS, overridden_corners
from rlmesh.models.model import Model, ModelTypeError
from rlmesh.models.seeds import predict_seed

NumpyModel = rlmesh.numpy.Model
OBSERVATION = np.array([1.0, 2.0], np.float32)
BATCH = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)


def episodes(*seeds: int) -> list[EpisodeContext]:
    return [EpisodeContext(f"e{seed}", seed) for seed in seeds]


class Single:
    def predict(self, observation: Any) -> Any:
        return observation * 2


class Chunk:
    def predict_chunk(self, observation: Any, execution_horizon: int) -> Any:
        return np.stack([observation + at for at in range(execution_horizon)])


class Sized(Chunk):
    def __init__(self, length: Any) -> None:
        self.native_chunk = length


class Batch:
    def predict_batch(self, observations: Any) -> Any:
        return observations * 10


class ChunkBatch:
    def predict_chunk_batch(self, observations: Any, execution_horizon: int) -> Any:
        return np.stack([observations + at for at in range(execution_horizon)], axis=1)


@pytest.mark.parametrize(
    ("policy", "has"),
    [
        (Single, {"predict"}),
        (Chunk, {"predict", "predict_chunk"}),
        (Batch, {"predict", "predict_batch"}),
        (ChunkBatch, set(CORNERS)),
    ],
)
def test_the_general_gives_the_less_general_and_never_the_other_way(
    policy: type, has: set[str]
) -> None:
    corners = NumpyModel(policy).corners

    assert {name for name in CORNERS if getattr(corners, name) is not None} == has


def test_derived_predictions_are_those_of_the_corner_that_they_follow_from() -> None:
    (episode,) = episodes(1)
    pair = episodes(1, 2)

    assert NumpyModel(Chunk).corners.predict(OBSERVATION, episode).tolist() == [1, 2]
    assert NumpyModel(Batch).corners.predict(OBSERVATION, episode).tolist() == [10, 20]
    whole = NumpyModel(ChunkBatch).corners
    assert whole.predict(OBSERVATION, episode).tolist() == [1, 2]
    assert whole.predict_chunk is not None
    assert whole.predict_batch is not None
    assert whole.predict_chunk(OBSERVATION, 2, episode).tolist() == [[1, 2], [2, 3]]
    assert whole.predict_batch(BATCH, pair).tolist() == BATCH.tolist()


def test_a_batch_of_vectors_without_time_is_taken_as_it_is() -> None:
    class Odd(NumpyModel):
        def predict_chunk_batch(self, observations: Any, execution_horizon: int) -> Any:
            return {"move": observations[:, None], "kind": np.arange(len(observations))}

    batch = Odd().corners.predict_batch
    assert batch is not None
    answer = batch(BATCH, episodes(1, 2))
    assert answer["move"].tolist() == BATCH.tolist()
    assert answer["kind"].tolist() == [0, 1]


def test_over_native_values_a_batch_is_a_list_and_a_chunk_gives_no_action() -> None:
    seen: list[Any] = []

    class Listed:
        def predict_batch(self, observations: Any) -> list[int]:
            seen.append(observations)
            return [7 for _ in observations]

    assert Model(Listed).corners.predict("o", EpisodeContext("", None)) == 7
    assert seen == [["o"]]
    for policy in (Chunk, ChunkBatch):
        with pytest.raises(ModelTypeError, match="no 'predict' follows"):
            Model(policy)


def test_the_corners_of_a_class_are_the_ones_that_it_defines() -> None:
    class Two(NumpyModel):
        def predict(self, observation: Any) -> Any: ...

        def predict_chunk_batch(self, observations: Any) -> Any: ...

    assert overridden_corners(Two) == ("predict", "predict_chunk_batch")
    assert overridden_corners(NumpyModel) == ()
    assert Two().corners.given == ("predict", "predict_chunk_batch")


Asked = list[tuple[Any, ...]]


def test_a_chunk_is_told_its_horizon_however_the_parameter_is_written() -> None:
    (episode,) = episodes(4)
    asked: Asked = []

    def positional(observation: Any, steps: int) -> Any:
        asked.append((steps,))

    def keyword(observation: Any, *, execution_horizon: int, context: PredictContext) -> Any:
        asked.append((execution_horizon, context["predict_index"]))

    def context_first(observation: Any, context: PredictContext, execution_horizon: int) -> Any:
        asked.append((execution_horizon, context["predict_index"]))

    def both(observation: Any, scale: int = 3, *, execution_horizon: int) -> Any:
        asked.append((scale, execution_horizon))

    def variadic(*args: Any) -> Any:
        asked.append((args[1], args[2]["predict_index"]))

    def neither(observation: Any) -> Any:
        asked.append(())

    def only_context(observation: Any, context: PredictContext) -> Any:
        asked.append((context["predict_index"],))

    calls: list[Callable[..., Any]] = [
        positional,
        keyword,
        context_first,
        both,
        variadic,
        neither,
        only_context,
    ]
    for call in calls:

        class Policy:
            predict_chunk = staticmethod(call)

        chunk = NumpyModel(Policy()).corners.predict_chunk
        assert chunk is not None
        chunk(OBSERVATION, 5, episode)

    assert asked == [(5,), (5, 1), (5, 2), (3, 5), (5, 4), (), (6,)]


def test_a_batch_is_told_the_contexts_of_its_rows_in_their_order() -> None:
    given: list[list[PredictContext]] = []

    class Policy:
        def predict_batch(self, observations: Any, contexts: list[PredictContext]) -> Any:
            given.append(contexts)
            return observations

        def predict_chunk_batch(
            self, observations: Any, horizon: int, contexts: list[PredictContext]
        ) -> Any:
            given.append(contexts)
            return observations[:, None]

    corners = NumpyModel(Policy()).corners
    pair = episodes(7, 9)
    assert corners.predict_batch is not None
    assert corners.predict_chunk_batch is not None
    corners.predict_batch(BATCH, pair)
    corners.predict_chunk_batch(BATCH, 1, pair)

    first, second = given
    assert [context["episode_id"] for context in first] == ["e7", "e9"]
    assert [context["predict_seed"] for context in second] == [
        predict_seed(7, 1),
        predict_seed(9, 1),
    ]


def test_predictions_are_counted_whether_or_not_a_context_was_asked_for() -> None:
    class Mixed:
        def predict(self, observation: Any) -> Any:
            return observation

        def predict_batch(self, observations: Any, contexts: list[PredictContext]) -> Any:
            return [context["predict_index"] for context in contexts]

    corners = NumpyModel(Mixed()).corners
    (episode,) = episodes(1)
    corners.predict(OBSERVATION, episode)
    assert corners.predict_batch is not None
    assert corners.predict_batch(BATCH[:1], [episode]) == [1]


def test_a_fixed_chunk_length_needs_chunks_and_a_length() -> None:
    class Fixed(NumpyModel):
        native_chunk = 4

        def predict(self, observation: Any) -> Any:
            return observation

    with pytest.raises(ModelTypeError, match="predicts no chunks"):
        Fixed()
    for length in (0, 1025, True, "four"):
        with pytest.raises(ValueError, match="native_chunk of Sized"):
            NumpyModel(Sized(length))
    assert NumpyModel(Sized(3)).native_chunk == 3
    assert NumpyModel(Sized(None)).native_chunk is None


def test_every_way_to_predict_can_be_called_by_hand() -> None:
    whole: Any = NumpyModel(ChunkBatch)

    assert whole.predict(OBSERVATION).tolist() == [1, 2]
    assert whole.predict_chunk(OBSERVATION, 3).tolist() == [[1, 2], [2, 3], [3, 4]]
    assert whole.predict_batch(BATCH).tolist() == BATCH.tolist()
    assert whole.predict_chunk_batch(BATCH, 2).shape == (2, 2, 2)
    assert whole.predict_chunk_batch({"a": BATCH}["a"]).shape == (2, 1, 2)
    with pytest.raises(ModelTypeError, match="has no 'predict_batch'"):
        NumpyModel(Single).predict_batch(BATCH)


def test_a_subclass_may_build_on_what_it_wraps() -> None:
    class Shifted(NumpyModel):
        def predict(self, observation: Any) -> Any:
            return super().predict(observation) + 1

    assert Shifted(Single).predict(OBSERVATION).tolist() == [3, 5]

    class Alone(NumpyModel):
        def predict(self, observation: Any) -> Any:
            return super().predict(observation)

    with pytest.raises(ModelTypeError, match="no 'predict' of its own"):
        Alone().predict(OBSERVATION)


def test_a_constructor_of_its_own_need_not_call_the_one_of_model() -> None:
    class Own(NumpyModel):
        def __init__(self, gain: int) -> None:
            self.gain = gain

        def predict(self, observation: Any) -> Any:
            return observation * self.gain

    model = Own(3)
    assert model.corners.predict(OBSERVATION, EpisodeContext("", None)).tolist() == [3, 6]
    assert model.name.endswith(".Own")
    model.end_episode("e")
    model.close()


def test_a_model_is_closed_by_the_block_that_it_is_used_in() -> None:
    closed: list[bool] = []
    with Model(lambda observation: 0, on_close=lambda: closed.append(True)) as model:
        assert model.corners.predict(OBSERVATION, EpisodeContext("", None)) == 0
        assert closed == []
    assert closed == [True]
