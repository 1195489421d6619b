from typing import Any, cast

import numpy as np
import pytest
from rlcore import InvalidValueError
from rlmesh.codec import NATIVE, NUMPY, Backend, compile_batch_codec
from rlmesh.spaces import (
    Box,
    Dict,
    Discrete,
    Graph,
    GraphInstance,
    MultiBinary,
    MultiDiscrete,
    OneOf,
    Sequence,
    Space,
    Text,
    Tuple,
)
from rlmesh.values import Tensor

NESTED = Dict({"a": Box(-9, 9, (2,)), "t": Tuple([Discrete(5), Text(3), MultiBinary(2)])})
LANES = [
    {"a": [1, 2], "t": (3, "x", [0, 1])},
    {"a": [3, 4], "t": (4, "yz", [1, 1])},
]
TREE: dict[str, Any] = {"a": [[1, 2], [3, 4]], "t": ([3, 4], ["x", "yz"], [[0, 1], [1, 1]])}


@pytest.mark.parametrize(
    "value",
    [
        TREE,
        tuple(LANES),
        np.array(LANES, object),
        {"a": np.array([[1, 2], [3, 4]], np.float64), "t": TREE["t"]},
        {"a": [np.array([1, 2], "f4"), np.array([3, 4], "f4")], "t": TREE["t"]},
        {"a": [Tensor(np.array([1, 2], "f4"), [2], "float32"), [3, 4]], "t": TREE["t"]},
        {"a": TREE["a"], "t": [lane["t"] for lane in LANES]},
        {"a": TREE["a"], "t": (np.array([3.0, 4.0]), np.array(["x", "yz"]), TREE["t"][2])},
    ],
    ids=["tree", "lanes", "objects", "wide", "arrays", "mixed", "lanes in a tree", "columns"],
)
def test_lanes_can_be_given_in_every_shape(value: object) -> None:
    codec = compile_batch_codec(NESTED, backend=NUMPY)
    assert codec.encode(value, 2) == codec.encode(LANES, 2)


@pytest.mark.parametrize(
    ("space", "value", "leaf"),
    [
        (Discrete(3), [0, 2], np.array([0, 2])),
        (Discrete(3), (True, np.int8(2)), np.array([1, 2])),
        (Discrete(3), np.array([[0], [2]]), np.array([0, 2])),
        (Discrete(3), [np.array([0]), np.array(2)], np.array([0, 2])),
        (Box(-9, 9, (1,)), [1, 2], np.array([1, 2], np.float32)),
        (Box(-9, 9, (1,)), np.array([1.0, 2.0]), np.array([1, 2], np.float32)),
        (Box(-9, 9, (1,)), [1, [2]], np.array([1, 2], np.float32)),
        (Box(-9, 9, ()), [1, 2], np.array([1, 2], np.float32)),
        (MultiDiscrete([3, 3], start=[1, 1]), [[1, 2], [3, 1]], np.array([0, 1, 2, 0])),
        (MultiBinary(2), np.array([[True, False]] * 2), np.array([1, 0, 1, 0], np.uint8)),
    ],
)
def test_what_can_be_meant_is_cast(space: Space, value: object, leaf: Any) -> None:
    assert compile_batch_codec(space, backend=NUMPY).encode(value, 2) == [leaf.tobytes()]


def test_a_tuple_that_could_be_both_is_the_tree_and_a_list_the_lanes() -> None:
    codec = compile_batch_codec(Tuple([Discrete(9), Discrete(9)]), backend=NUMPY)
    tree, lanes = (codec.encode(value, 2) for value in (((1, 2), (3, 4)), [(1, 2), (3, 4)]))
    assert [np.frombuffer(leaf, "<i8").tolist() for leaf in tree] == [[1, 2], [3, 4]]
    assert [np.frombuffer(leaf, "<i8").tolist() for leaf in lanes] == [[1, 3], [2, 4]]


def test_native_batches_hold_tensors_and_lists_of_integers() -> None:
    codec = compile_batch_codec(NESTED, backend=NATIVE)
    value = codec.decode(codec.encode(LANES, 2), 2)
    assert value["t"][:2] == ([3, 4], ("x", "yz"))
    assert value["a"] == Tensor(np.array([[1, 2], [3, 4]], "f4"), [2, 2], "float32")
    assert codec.encode(value, 2) == codec.encode(LANES, 2)
    each = codec.split(value, 2)
    assert each[1]["a"] == Tensor(np.array([3, 4], "f4"), [2], "float32")
    assert codec.join(each) == value


def test_a_part_of_the_lanes_is_a_batch_of_its_own() -> None:
    codec = compile_batch_codec(NESTED, backend=NUMPY)
    one = codec.decode(codec.encode(LANES[1:], 1), 1)
    assert codec.split(one, 1)[0]["t"][1] == "yz"
    nobody = codec.decode(codec.encode([], 0), 0)
    assert nobody["a"].shape == (0, 2)
    assert codec.split(nobody, 0) == []


@pytest.mark.parametrize("backend", [NATIVE, NUMPY], ids=lambda backend: backend.name)
def test_joined_values_have_memory_of_their_own(backend: Backend) -> None:
    codec = compile_batch_codec(Box(-9, 9, (2,)), backend=backend)
    values = [np.zeros(2, np.float32), np.zeros(2, np.float32)]
    joined = codec.join(values)
    values[0][:] = 7
    assert not np.asarray(joined).any()


def test_a_large_batch_is_not_copied_on_either_side() -> None:
    codec = compile_batch_codec(Box(0, 255, (64, 64), "uint8"), backend=NUMPY)
    frames = np.zeros((8, 64, 64), np.uint8)
    (leaf,) = codec.encode(frames, 8)
    frames[7, 63, 63] = 5
    assert leaf[-1] == 5
    memory = bytearray(leaf)
    codec.decode_owned([memoryview(memory)], 8)[7, 63, 63] = 6
    assert memory[-1] == 6
    copied = codec.decode([memoryview(memory)], 8)
    memory[-1] = 9
    assert copied[7, 63, 63] == 6


@pytest.mark.parametrize(
    ("space", "value", "path", "what"),
    [
        (Discrete(3), [0], "$", "1 lanes; it must have 2"),
        (Discrete(3), 1, "$", "must be 2 lanes"),
        (Discrete(3), [0, 3], "$", "in lane 1, the value at $ is 3"),
        (Discrete(3), [0.5, 0], "$", "in lane 0,"),
        (Discrete(3), [0, None], "$", "in lane 1,"),
        (Discrete(3), np.array([[0, 1], [1, 2]]), "$", "in lane 0,"),
        (Box(-9, 9, (2,)), np.zeros((3, 2)), "$", "3 lanes; it must have 2"),
        (Box(-9, 9, (2,)), np.zeros((2, 3)), "$", "in lane 0, the value at $ has shape [3]"),
        (Box(-9, 9, (2,)), [[1, 2], [3]], "$", "in lane 1, the value at $ has shape [1]"),
        (Box(-9, 9, (2,)), [[1, 2], "ab"], "$", "in lane 1,"),
        (Box(-9, 9, (2,)), [[1, 2], [1j, 0]], "$", "in lane 1,"),
        (Box(0, 9, (1,), "uint8"), [[1], [256]], "$", "in lane 1, the value at $ holds 256"),
        (MultiBinary(2), [[0, 1], [0, 2]], "$", "in lane 1, the value at $ holds 2"),
        (MultiDiscrete([2, 2]), [[0, 1], [2, 0]], "$", "in lane 1, the value at $ holds 2"),
        (Text(3), ["a", 3], "$", "in lane 1,"),
        (Text(3), "ab", "$", "must be a tuple of 2 lanes"),
        (NESTED, LANES[:1], "$", "1 lanes; it must have 2"),
        (NESTED, [LANES[0], {"a": [1, 2]}], "$.t", "in lane 1, the value at $.t is missing"),
        (NESTED, [LANES[0], 3], "$", "in lane 1, the value at $ must be a mapping"),
        (NESTED, [LANES[0], {"a": [1, 2], "t": (1,)}], "$.t", "in lane 1,"),
        (NESTED, {"a": TREE["a"]}, "$.t", "is missing"),
        (NESTED, {"a": TREE["a"], "t": 3}, "$.t", "must be a tuple of 3"),
        (NESTED, {"a": TREE["a"], "t": [1, 2, 3, 4]}, "$.t", "one for each of 2 lanes"),
        (NESTED, {"a": TREE["a"], "t": ([1, 9], "ab", 0)}, "$.t[0]", "in lane 1,"),
    ],
)
def test_a_value_that_is_no_batch_is_an_error_with_path_and_lane(
    space: Space, value: object, path: str, what: str
) -> None:
    with pytest.raises(InvalidValueError) as caught:
        compile_batch_codec(space, backend=NUMPY).encode(value, 2)
    assert caught.value.path == path
    assert what in caught.value.message


def test_nan_is_refused_in_its_lane_where_it_was_asked_for() -> None:
    space = Dict({"a": Box(-1, 1, (2,))})
    value = {"a": np.array([[0, 0], [0, np.nan]], np.float32)}
    leaves = compile_batch_codec(space, backend=NUMPY).encode(value, 2)
    strict = compile_batch_codec(space, backend=NUMPY, strict_nan=True)
    for call in (lambda: strict.encode(value, 2), lambda: strict.decode(leaves, 2)):
        with pytest.raises(InvalidValueError, match=r"in lane 1, the value at \$\.a holds NaN"):
            cast("Any", call)()


@pytest.mark.parametrize(
    ("space", "leaves", "lanes"),
    [
        (Discrete(3), [bytes(8)], 2),
        (Discrete(3), [bytes(8)], 2**62),
        (Discrete(3), [bytes(8) + b"\3" + bytes(7)], 2),
        (MultiDiscrete([2]), [bytes(8) + b"\xff" * 8], 2),
        (Text(3), [bytes(8)], 2**61),
        (Text(3), [(2).to_bytes(8, "little") + bytes(7) + b"\x80" + bytes(8)], 2),
        (NESTED, [b""], 2),
    ],
)
def test_bytes_that_are_no_batch_are_an_error(
    space: Space, leaves: list[bytes], lanes: int
) -> None:
    codec = compile_batch_codec(space, backend=NUMPY)
    for read in (codec.decode, codec.decode_owned):
        with pytest.raises(InvalidValueError):
            read(leaves, lanes)


def test_splitting_into_another_number_of_lanes_is_an_error() -> None:
    codec = compile_batch_codec(NESTED, backend=NUMPY)
    value = codec.decode(codec.encode(LANES, 2), 2)
    with pytest.raises(InvalidValueError, match="2 lanes; it must have 3"):
        codec.split(value, 3)


def test_an_error_within_a_sequence_names_the_item() -> None:
    codec = compile_batch_codec(Sequence(Discrete(3)), backend=NUMPY)
    with pytest.raises(InvalidValueError, match=r"in lane 1, in item 2, the value at \$\[\*\]"):
        codec.encode([(0,), (0, 1, 9)], 2)


@pytest.mark.parametrize(
    "space",
    [
        Sequence(Tuple([])),
        Sequence(Box(0, 1, (0,)), stack=True),
        Sequence(Sequence(Dict({}))),
        Graph(Box(0, 1, (0,)), Box(0, 1, (0,))),
    ],
    ids=repr,
)
def test_a_small_body_cannot_announce_what_fits_no_memory(space: Space) -> None:
    codec = compile_batch_codec(space, backend=NUMPY)
    for count in (2**20, 2**40, 2**63):
        body = count.to_bytes(8, "little") + bytes(16)
        slab = (1).to_bytes(8, "little") + len(body).to_bytes(8, "little") + body
        with pytest.raises(InvalidValueError):
            codec.decode([slab], 1)


def test_items_without_content_keep_their_number() -> None:
    codec = compile_batch_codec(Sequence(Tuple([])), backend=NUMPY)
    assert codec.decode(codec.encode([((), ()), ()], 2), 2) == (((), ()), ())
    graphs = compile_batch_codec(Graph(Box(0, 1, (0,))), backend=NATIVE)
    (graph,) = graphs.decode(graphs.encode([GraphInstance(np.zeros((3, 0)))], 1), 1)
    assert graph.nodes.shape == [3, 0]


def test_an_alternative_arrives_with_its_number() -> None:
    codec = compile_batch_codec(OneOf([Discrete(3), Text(2)]), backend=NUMPY)
    assert codec.decode(codec.encode([(1, "a"), (0, 2)], 2), 2) == ((1, "a"), (0, 2))
