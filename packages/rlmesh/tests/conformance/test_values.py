"""Values compare by what they hold."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from rlmesh import Tensor
from rlmesh.conformance.values import digest, kept

VALUES: list[Any] = [
    None,
    True,
    1,
    1.0,
    "1",
    b"1",
    [],
    [1],
    [[1]],
    {},
    {"a": 1},
    {"a": 2},
    {"b": 1},
    {1, 2},
    np.zeros(2),
    np.zeros(2, np.float32),
    np.zeros((2, 1)),
    np.zeros((1, 2)),
    np.array([None, 1], object),
    float("nan"),
]


def test_values_of_other_content_have_other_digests() -> None:
    assert len({digest(value) for value in VALUES}) == len(VALUES)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.float64(1.5), 1.5),
        (np.int32(3), 3),
        (np.bool_(True), True),
        ((1, 2), [1, 2]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (np.arange(6).reshape(2, 3)[:, ::2], np.array([[0, 2], [3, 5]])),
        (Tensor(bytes(8), [2], "float32"), np.zeros(2, np.float32)),
        (float("nan"), float("nan")),
        (object(), object()),
    ],
)
def test_values_of_the_same_content_have_the_same_digest(one: Any, other: Any) -> None:
    assert digest(one) == digest(other)


def test_a_digest_is_the_same_in_every_process() -> None:
    code = (
        "from rlmesh.conformance.values import digest\n"
        "print(digest({'x': {'a', 'b', 'c'}, 'y': (1, 2.5, None)}).hex())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=30
    )
    assert done.stdout.strip() == digest({"y": (1, 2.5, None), "x": {"c", "b", "a"}}).hex()


def test_small_values_are_kept_and_large_ones_are_not() -> None:
    small = {"a": np.zeros(4)}

    copied: Any = kept(small)
    small["a"] += 1

    assert copied["a"].tolist() == [0.0] * 4
    assert kept(np.zeros(10_000)) is None
