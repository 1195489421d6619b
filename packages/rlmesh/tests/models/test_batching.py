"""Values that share a leading axis, and values that cannot."""

from __future__ import annotations

from typing import Any

import jax as typed_jax
import numpy as np
import pytest
import torch
from rlcore import InvalidActionError, InvalidValueError
from rlmesh.models.batching import count_of, stack, unstack
from rlmesh.models.chunks import first_frame, first_of_each, frames_of
from rlmesh.values import Tensor

jax: Any = typed_jax  # Any: checkers cannot read the types of most of jax


def test_leaves_are_stacked_in_the_tree_that_they_are_in() -> None:
    batch = stack(
        [
            {"x": np.zeros(2), "t": "a", "p": (1, [2.0])},
            {"x": np.ones(2), "t": "b", "p": (3, [4.0])},
        ]
    )

    assert batch["x"].tolist() == [[0, 0], [1, 1]]
    assert batch["t"] == ["a", "b"]
    assert (batch["p"][0].tolist(), batch["p"][1][0].tolist()) == ([1, 3], [2, 4])


@pytest.mark.parametrize(
    ("make", "kind"),
    [(torch.tensor, torch.Tensor), (jax.numpy.asarray, jax.Array), (np.array, np.ndarray)],
)
def test_each_library_s_arrays_stay_its_own(make: Any, kind: type) -> None:
    batch = stack([make([1.0, 2.0]), make([3.0, 4.0])])

    assert isinstance(batch, kind)
    assert [row.tolist() for row in unstack(batch, 2)] == [[1, 2], [3, 4]]


def test_plain_numbers_become_arrays_of_the_framework_that_is_asked_for() -> None:
    batch = stack([{"n": 1, "x": np.zeros(1)}, {"n": 2, "x": np.ones(1)}], leaf=torch.as_tensor)

    assert batch["n"].tolist() == [1, 2]
    assert (type(batch["n"]), type(batch["x"])) == (torch.Tensor, np.ndarray)


def test_native_values_are_a_list_and_their_tensors_have_rows() -> None:
    tensors = [Tensor(np.full(2, at, np.float32), [2], "float32") for at in range(2)]

    assert stack(tensors, native=True) == tensors
    assert unstack(Tensor(np.arange(4, dtype=np.int64), [2, 2], "int64"), 2) == [
        Tensor(np.arange(2) + 2 * at, [2], "int64") for at in range(2)
    ]
    assert unstack(Tensor(np.arange(2, dtype=np.int64), [2], "int64"), 2) == [0, 1]


@pytest.mark.parametrize(
    "values",
    [
        [np.zeros(2), np.zeros(3)],
        [None, None],
        [{"a": 1}, {"b": 1}],
        [{"a": 1}, 1],
        [(1, 2), (1,)],
        [(1, 2), [1, 2]],
        [torch.zeros(2), torch.zeros(3)],
    ],
)
def test_what_differs_in_form_is_no_batch(values: list[Any]) -> None:
    with pytest.raises(InvalidValueError, match="no batch"):
        stack(values)


@pytest.mark.parametrize(
    "batch",
    [np.zeros((3, 2)), [1], 4, "text", None, {"a": np.zeros(3)}, (np.zeros(1), np.zeros(2))],
)
def test_a_batch_of_another_size_is_refused(batch: Any) -> None:
    with pytest.raises(InvalidValueError, match="a batch of 2"):
        unstack(batch, 2)


def test_trees_are_taken_apart_row_by_row() -> None:
    batch = {"a": np.arange(2), "b": (np.zeros((2, 1)), ["x", "y"])}

    assert unstack(batch, 2) == [{"a": 0, "b": ([0.0], "x")}, {"a": 1, "b": ([0.0], "y")}]
    assert unstack((), 2) == [(), ()]
    assert count_of(batch) == 2
    assert count_of({}) is None
    assert count_of(np.float32(1)) is None


CHUNKS: list[tuple[Any, list[Any]]] = [
    (np.arange(3), [0, 1, 2]),
    ([5, 6], [5, 6]),
    ({"a": [1, 2], "b": np.array([3, 4])}, [{"a": 1, "b": 3}, {"a": 2, "b": 4}]),
    ("text", ["text"]),
    (4, [4]),
    (np.float32(2), [2.0]),
    (np.array(7), [7]),
    (iter([1, 2]), [1, 2]),
    ({}, [{}]),
    (Tensor(np.arange(2, dtype=np.int64), [2], "int64"), [0, 1]),
]


@pytest.mark.parametrize(("chunk", "frames"), CHUNKS)
def test_a_chunk_holds_its_actions_along_the_first_axis(chunk: Any, frames: list[Any]) -> None:
    assert frames_of(chunk) == frames


@pytest.mark.parametrize("chunk", [[], np.zeros((0, 2)), {"a": []}])
def test_an_empty_chunk_holds_no_action(chunk: Any) -> None:
    for take in (frames_of, first_frame):
        with pytest.raises(InvalidActionError, match="no action"):
            take(chunk)


def test_fields_of_a_chunk_must_agree_on_its_length() -> None:
    with pytest.raises(ValueError, match=r"'a': 2, 'b': 1"):
        frames_of({"a": [1, 2], "b": 5})
    with pytest.raises(InvalidActionError, match="hold no action"):
        first_of_each(np.zeros((2, 0)))


def test_the_first_action_is_taken_from_each_field() -> None:
    assert first_frame({"a": np.arange(3), "b": {"c": [4, 5]}, "t": "now"}) == {
        "a": 0,
        "b": {"c": 4},
        "t": "now",
    }
    assert first_of_each([[1, 2], [3]]) == [1, 3]
    assert first_of_each((np.arange(4).reshape(2, 2),))[0].tolist() == [0, 2]
