"""Values out of range, told from their bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rlmesh.codec import NUMPY, compile_codec
from rlmesh.codec.ranges import compile_range_check
from rlmesh.spaces import (
    Box,
    Dict,
    Discrete,
    Graph,
    MultiBinary,
    MultiDiscrete,
    OneOf,
    Sequence,
    Space,
    Text,
    Tuple,
)
from rlmesh.values import DTYPES

HALF = Box(np.array([0, -np.inf]), np.array([np.inf, 1]), (2,))
FREE = Box(np.array([0, -np.inf]), np.array([1, np.inf]), (2,))  # its second element is
WIDE = Box(-1, 1, (40,))
STEPS = Box(np.zeros(40), np.arange(1, 41), (40,))


def found(space: Space, *lanes: Any) -> list[tuple[str, str]]:
    check = compile_range_check(space)
    assert check is not None
    codec = compile_codec(space, backend=NUMPY)
    encoded = [codec.encode(lane) for lane in lanes]
    leaves = [b"".join(bytes(leaf) for leaf in column) for column in zip(*encoded, strict=True)]
    return [(fault.path, fault.detail) for fault in check(leaves, len(lanes))]


def changed(size: int, at: int, number: float) -> list[float]:
    return [number if index == at else 0.5 for index in range(size)]


@pytest.mark.parametrize(
    "space",
    [
        Box(-np.inf, np.inf, (3,)),
        Box(0, 255, (8, 8, 3), "uint8"),
        Box(np.zeros((2, 2)), np.full((2, 2), 255), (2, 2), "uint8"),
        Box(False, True, (2,), "bool"),
        Box(0, 1, (0,)),
        Discrete(3),
        MultiBinary(3),
        MultiDiscrete([2, 3]),
        Dict({"a": Discrete(2), "b": Tuple([Box(-np.inf, np.inf, ())])}),
    ],
    ids=repr,
)
def test_where_nothing_can_be_out_of_range_there_is_nothing_to_check(space: Space) -> None:
    assert compile_range_check(space) is None


@pytest.mark.parametrize(
    ("space", "value", "detail"),
    [
        (Box(-1, 1, (4,)), [0, 3, 0, 0], "holds 3.0 at [1], outside -1.0 to 1.0"),
        (Box(-0.1, 0.1, (1,)), [1.8], "holds 1.8 at [0], outside -0.1 to 0.1"),
        (Box(-1, 1, ()), -2, "holds -2.0, outside -1.0 to 1.0"),
        (Box(-1, 1, (1,), "float16"), [np.nan], "holds nan at [0], outside -1.0 to 1.0"),
        (Box(0, 9, (2, 2), "int64"), [[0, 1], [10, 2]], "holds 10 at [1, 0], outside 0 to 9"),
        (Box(0, 254, (20,), "uint8"), [255] + [0] * 19, "holds 255 at [0]"),
        (Box(True, True, (2,), "bool"), [True, False], "holds False at [1], outside True to True"),
        (HALF, [-1, 0], "holds -1.0 at [0], outside 0.0 to inf"),
        (HALF, [0, 2], "holds 2.0 at [1], outside -inf to 1.0"),
        (WIDE, changed(40, 39, -1.5), "holds -1.5 at [39], outside -1.0 to 1.0"),
        (WIDE, changed(40, 3, np.nan), "holds nan at [3]"),
        (STEPS, changed(40, 2, 4), "holds 4.0 at [2], outside 0.0 to 3.0"),
        (STEPS, changed(40, 2, np.nan), "holds nan at [2]"),
        (Text(3), "long", "has 4 characters; it must have 1 to 3"),
        (Text(3), "", "has 0 characters"),
        (Text(3, charset="ab"), "abz", "holds 'z', which is not in its charset"),
    ],
)
def test_what_is_out_of_range_is_named(space: Space, value: Any, detail: str) -> None:
    ((path, said),) = found(space, value)

    assert path == "$"
    assert said.startswith(detail)


@pytest.mark.parametrize(
    ("space", "value"),
    [
        (Box(-1, 1, (4,)), [-1, 1, 0, 0.5]),
        (HALF, [np.inf, -np.inf]),
        (FREE, [0.5, np.nan]),
        (Box(np.tile(FREE.low, 10), np.tile(FREE.high, 10)), [0.5, np.nan] * 10),
        (WIDE, changed(40, 0, 1)),
        (STEPS, changed(40, 39, 40)),
        (Text(3, 0, "ab"), ""),
        (Text(3), "h\u00e9y"),
        (Box(-1, 1, (1,)), np.array([1 + 1e-9])),  # float32 holds it as 1
    ],
)
def test_what_is_within_is_not_mentioned(space: Space, value: Any) -> None:
    assert found(space, value) == []


def test_each_leaf_has_a_path_of_its_own() -> None:
    space = Dict({"a": Tuple([Box(-1, 1, (1,)), Text(2)]), "b": Discrete(2), "c": Box(0, 1, (1,))})

    faults = found(space, {"a": ([2], "long"), "b": 1, "c": [0.5]})

    assert [path for path, _ in faults] == ["$.a[0]", "$.a[1]"]


@pytest.mark.parametrize("space", [Box(-1, 1, (2,)), Box(-1, 1, (20,))], ids=repr)
def test_a_batch_says_which_lane(space: Box) -> None:
    good, bad = np.zeros(space.shape), np.zeros(space.shape)
    bad[1] = 5

    assert found(space, good, good) == []
    assert found(space, good, good, bad) == [
        ("$", "holds 5.0 at [1] in lane 2, outside -1.0 to 1.0")
    ]


@pytest.mark.parametrize("dtype", list(DTYPES))
@pytest.mark.parametrize("size", [2, 30])
def test_every_element_type_is_read_as_what_it_is(dtype: str, size: int) -> None:
    number = DTYPES[dtype].type(1)
    space = Box(number, number, (size,), dtype)

    assert found(space, np.ones(size, DTYPES[dtype])) == []
    ((_, said),) = found(space, changed_array(size, dtype))
    assert said.startswith(f"holds {DTYPES[dtype].type(0)} at [1]")


def changed_array(size: int, dtype: str) -> Any:
    array = np.ones(size, DTYPES[dtype])
    array[1] = 0
    return array


@pytest.mark.parametrize(
    ("space", "good", "bad"),
    [
        (Sequence(Box(0, 1, (1,))), ([0.5], [1]), ([0.5], [2])),
        (Sequence(Text(2)), ("a", "bc"), ("a", "long")),
        (OneOf([Discrete(2), Box(0, 1, (1,))]), (1, [1]), (1, [2])),
        (Graph(Box(0, 1, (1,))), ([[0.5]], None, None), ([[2]], None, None)),
    ],
    ids=repr,
)
def test_values_without_a_fixed_size_are_looked_into(space: Space, good: Any, bad: Any) -> None:
    assert found(space, good) == []
    ((path, said),) = found(space, bad)
    assert path == "$"
    assert "value at $" in said


def test_values_without_a_fixed_size_and_without_limits_are_left_alone() -> None:
    free = Box(-np.inf, np.inf, (1,))

    for space in (Sequence(free), OneOf([free, Discrete(2)]), Graph(free, free)):
        assert compile_range_check(space) is None


@pytest.mark.parametrize(
    "space", [Box(0, 1, (2,)), Box(0, 1, (20,)), Text(3), Sequence(Box(0, 1, (1,)))], ids=repr
)
def test_what_has_a_wrong_form_is_left_to_the_codec(space: Space) -> None:
    check = compile_range_check(space)

    assert check is not None
    assert check([], 1) == []
    assert check([b"\xff\xff\xff"], 1) == []
    assert check([b"\1" + bytes(7) + b"\1" + bytes(7) + b"\xff"], 1) == []
