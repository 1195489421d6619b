"""The four ways to predict, and how those that a model does not have follow from those it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rlmesh.models.batching import stack, unstack
from rlmesh.models.chunks import first_frame, first_of_each
from rlmesh.models.context import EpisodeContext
from rlmesh.models.predicting import Predicting
from rlmesh.models.signature import (
    Predict,
    PredictBatch,
    PredictChunk,
    PredictChunkBatch,
    batch_prediction,
    chunk_batch_prediction,
    chunk_prediction,
    prediction,
)

# Any, in this room: what observations and actions are depends on the environment.

CORNERS: Final = ("predict", "predict_chunk", "predict_batch", "predict_chunk_batch")


@dataclass(frozen=True, slots=True)
class Corners:
    """A model's predictions as a run calls them; None where there is none and none follows.

    Attributes:
        given: which the model has of its own; the others follow from these.
    """

    given: tuple[str, ...]
    predict: Predict
    predict_chunk: PredictChunk | None
    predict_batch: PredictBatch | None
    predict_chunk_batch: PredictChunkBatch | None


def overridden_corners(kind: type) -> tuple[str, ...]:
    """Return which ways to predict a class has of its own, in the order of `CORNERS`."""
    return tuple(
        name
        for name in CORNERS
        if getattr(kind, name, None) not in (None, getattr(Predicting, name))
    )


def uniform(name: str, call: Callable[..., Any], *, deterministic: bool) -> Callable[..., Any]:
    """Return one of a model's own ways to predict as runs and servers call it."""
    match name:
        case "predict":
            return prediction(call, deterministic=deterministic)
        case "predict_chunk":
            return chunk_prediction(call)
        case "predict_batch":
            return batch_prediction(call)
        case _:
            return chunk_batch_prediction(call)


def derive(
    given: Mapping[str, Callable[..., Any]],
    *,
    native: bool,
    deterministic: bool,
    leaf: Callable[[Any], Any] | None = None,
) -> Corners | None:
    """Return all ways to predict that follow from those given, or None if no single one does.

    What is more general gives what is less: a chunk of one for an action, a batch of one for one
    episode. A chunk never follows from single actions, nor a batch from single episodes.

    Args:
        given: by their names.
        native: over native values, whose batches are lists and whose chunks cannot be indexed, so
            that a single action does not follow from a chunk.
        deterministic: for policies that take such a parameter.
        leaf: see `stack`.
    """

    def alone(observation: Any) -> Any:
        return stack([observation], native=native, leaf=leaf)

    whole = None
    if "predict_chunk_batch" in given:
        whole = chunk_batch_prediction(given["predict_chunk_batch"])
    chunk: PredictChunk | None = None if whole is None else _chunk_of_whole(whole, alone)
    if "predict_chunk" in given:
        chunk = chunk_prediction(given["predict_chunk"])
    batch: PredictBatch | None = None if whole is None or native else _batch_of_whole(whole)
    if "predict_batch" in given:
        batch = batch_prediction(given["predict_batch"])
    single: Predict | None
    if "predict" in given:
        single = prediction(given["predict"], deterministic=deterministic)
    else:
        single = _single(batch, None if native else chunk, alone)
    if single is None:
        return None
    return Corners(tuple(name for name in CORNERS if name in given), single, chunk, batch, whole)


def _single(
    batch: PredictBatch | None, chunk: PredictChunk | None, alone: Callable[[Any], Any]
) -> Predict | None:
    if batch is not None:
        return _single_of_batch(batch, alone)
    return None if chunk is None else _single_of_chunk(chunk)


def _chunk_of_whole(whole: PredictChunkBatch, alone: Callable[[Any], Any]) -> PredictChunk:
    def predict(observation: Any, horizon: int, episode: EpisodeContext) -> Any:
        return unstack(whole(alone(observation), horizon, [episode]), 1)[0]

    return predict


def _batch_of_whole(whole: PredictChunkBatch) -> PredictBatch:
    def predict(observations: Any, episodes: Sequence[EpisodeContext]) -> Any:
        return first_of_each(whole(observations, 1, episodes))

    return predict


def _single_of_batch(batch: PredictBatch, alone: Callable[[Any], Any]) -> Predict:
    def predict(observation: Any, episode: EpisodeContext) -> Any:
        return unstack(batch(alone(observation), [episode]), 1)[0]

    return predict


def _single_of_chunk(chunk: PredictChunk) -> Predict:
    return lambda observation, episode: first_frame(chunk(observation, 1, episode))
