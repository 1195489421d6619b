from typing import Any, cast

import numpy as np
import pytest
from rlcore import InvalidValueError
from rlmesh.codec import NATIVE, NUMPY, Backend, compile_batch_codec, compile_codec
from rlmesh.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space, Text, Tuple
from rlmesh.values import Tensor

NESTED = Dict(
    {
        "t": Tuple([MultiBinary(2), Text(8)]),
        "n": Dict({"y": Discrete(300), "x": Box(0, 255, (2,), "uint8")}),
    }
)

PUBLISHED: list[tuple[Space, list[object], list[str]]] = [
    (Box(-1, 1, (3,)), [[0.5, -1, 0.25]], ["0000003f000080bf0000803e"]),
    (Discrete(5, start=-2), [-2], ["feffffffffffffff"]),
    (Discrete(300), [1, 256], ["01000000000000000001000000000000"]),
    (MultiBinary((2, 2)), [[[1, 0], [0, 1]], np.zeros((2, 2))], ["0100000100000000"]),
    (MultiDiscrete([3, 300]), [[2, 299]], ["02000000000000002b01000000000000"]),
    (Text(10), ["héy"], ["0100000000000000040000000000000068c3a979"]),
    (Text(10), ["hi", "abc"], ["0200000000000000020000000000000003000000000000006869616263"]),
    (
        NESTED,
        [
            {"n": {"x": [7, 8], "y": 258}, "t": ([1, 0], "ab")},
            {"n": {"x": [9, 10], "y": 1}, "t": ([1, 1], "c")},
        ],
        [
            "0708090a",
            "02010000000000000100000000000000",
            "01000101",
            "020000000000000002000000000000000100000000000000616263",
        ],
    ),
]


@pytest.mark.parametrize(("space", "lanes", "leaves"), PUBLISHED, ids=repr)
def test_values_are_the_published_bytes(
    space: Space, lanes: list[object], leaves: list[str]
) -> None:
    batch = compile_batch_codec(space, backend=NUMPY)
    content = [bytes.fromhex(leaf) for leaf in leaves]
    assert batch.encode(lanes, len(lanes)) == content
    assert batch.encode(batch.decode(content, len(lanes)), len(lanes)) == content
    if len(lanes) == 1:
        codec = compile_codec(space, backend=NUMPY)
        assert codec.encode(lanes[0]) == content
        assert codec.encode(codec.decode(content)) == content


def test_decoded_arrays_belong_to_the_caller() -> None:
    codec = compile_codec(Box(-1, 1, (2, 2)), backend=NUMPY)
    array = codec.decode(codec.encode(np.ones((2, 2), np.float32)))
    array[0, 0] = 5
    assert array.base is None
    assert array.dtype == np.float32


def test_native_values_hold_tensors() -> None:
    codec = compile_codec(Dict({"a": Box(-1, 1, (2,)), "b": Discrete(3)}), backend=NATIVE)
    value = codec.decode(codec.encode({"b": 2, "a": [0.5, 1]}))
    assert value == {"a": Tensor(np.array([0.5, 1], np.float32), [2], "float32"), "b": 2}
    assert list(value) == ["a", "b"]
    assert codec.encode(value) == codec.encode({"a": [0.5, 1], "b": 2})


def test_the_values_of_a_peer_with_a_start_are_shifted() -> None:
    codec = compile_codec(MultiDiscrete([3, 3], start=[1, -1]), backend=NUMPY)
    leaves = codec.encode([3, -1])
    assert np.frombuffer(leaves[0], "<i8").tolist() == [2, 0]
    assert codec.decode(leaves).tolist() == [3, -1]


def test_any_byte_but_zero_is_one() -> None:
    assert compile_codec(MultiBinary(3), backend=NUMPY).decode([b"\0\7\xff"]).tolist() == [0, 1, 1]
    flags = compile_codec(Box(0, 1, (3,), "bool"), backend=NUMPY).decode([b"\0\7\xff"])
    assert flags.tolist() == [False, True, True]


def test_an_empty_container_has_no_leaves() -> None:
    codec = compile_codec(Dict({"a": Tuple([])}), backend=NUMPY)
    assert codec.encode({"a": ()}) == []
    assert codec.decode([]) == {"a": ()}


def test_the_size_hint_is_about_what_a_value_takes() -> None:
    codec = compile_codec(Tuple([Box(0, 1, (4,)), Discrete(2), Text(10)]), backend=NUMPY)
    assert (codec.leaf_count, codec.size_hint) == (3, 16 + 8 + 26)


def test_sizes_are_known_where_no_value_changes_them() -> None:
    fixed = Dict({"a": Box(0, 1, (4,)), "b": Tuple([Discrete(2), MultiBinary(3)])})
    assert compile_codec(fixed, backend=NUMPY).fixed_sizes == (16, 8, 3)
    assert compile_codec(Dict({}), backend=NUMPY).fixed_sizes == ()
    assert compile_codec(Tuple([Discrete(2), Text(3)]), backend=NUMPY).fixed_sizes is None


LARGE = Box(0, 255, (210, 160, 3), "uint8")


def test_a_large_array_is_not_copied_to_be_sent() -> None:
    frame = np.zeros((210, 160, 3), np.uint8)
    (leaf,) = compile_codec(LARGE, backend=NUMPY).encode(frame)
    assert isinstance(leaf, memoryview)
    assert (leaf.format, leaf.ndim, leaf.nbytes, leaf.contiguous) == ("B", 1, 100_800, True)
    frame[0, 0, 0] = 7
    assert leaf[0] == 7


def test_an_array_in_another_order_is_sent_in_c_order() -> None:
    frame = np.random.default_rng(3).integers(0, 255, (3, 160, 210), np.uint8).T
    (leaf,) = compile_codec(LARGE, backend=NUMPY).encode(frame)
    assert leaf == frame.tobytes()


@pytest.mark.parametrize("backend", [NATIVE, NUMPY], ids=lambda backend: backend.name)
def test_a_decoded_value_survives_what_happens_to_the_bytes(backend: Backend) -> None:
    space = Dict({"frame": LARGE, "small": Box(-9, 9, (2,)), "flag": MultiBinary(2)})
    codec = compile_codec(space, backend=backend)
    value = {"frame": np.ones((210, 160, 3), np.uint8), "small": [1, 2], "flag": [1, 0]}
    memory = [bytearray(leaf) for leaf in codec.encode(value)]
    decoded = codec.decode([memoryview(leaf) for leaf in memory])
    for leaf in memory:
        leaf[:] = bytes(len(leaf))
    assert np.asarray(decoded["frame"]).all()
    assert np.asarray(decoded["small"]).tolist() == [1, 2]
    assert np.asarray(decoded["flag"]).tolist() == [1, 0]


def test_an_owned_value_is_writable_and_over_the_memory_given() -> None:
    codec = compile_codec(Dict({"frame": LARGE, "small": Box(-9, 9, (2,))}), backend=NUMPY)
    memory = [bytearray(100_800), bytearray(8)]
    value = codec.decode_owned([memoryview(leaf) for leaf in memory])
    value["frame"][0, 0, 0] = 7
    value["small"][0] = 7
    assert memory[0][0] == 7


def test_an_owned_array_at_an_odd_address_is_aligned() -> None:
    codec = compile_codec(Box(-9, 9, (3000,)), backend=NUMPY)
    content = memoryview(bytearray(12_001))[1:]
    assert codec.decode_owned([content]).flags.aligned


def test_an_owned_tensor_is_over_the_memory_given() -> None:
    memory = bytearray(100_800)
    tensor = compile_codec(LARGE, backend=NATIVE).decode_owned([memoryview(memory)])
    memory[0] = 7
    assert tensor.tolist()[0][0][0] == 7


@pytest.mark.parametrize(
    ("space", "given", "meant"),
    [
        (Box(-9, 9, (2,)), [1, 2], [1, 2]),
        (Box(-9, 9, (2,)), np.array([1, 2], np.float64), [1, 2]),
        (Box(-9, 9, (2,)), np.array([1, 2], ">f4"), [1, 2]),
        (Box(-9, 9, (2, 3)), np.arange(6, dtype="f4").reshape(3, 2).T, [[0, 2, 4], [1, 3, 5]]),
        (Box(-9, 9, (1,)), 3.0, [3]),
        (Box(-9, 9, ()), 3.0, 3),
        (Box(-np.inf, np.inf, (1,)), [np.inf], [np.inf]),
        (Box(0, 255, (2,), "uint8"), [3.0, 4.0], [3, 4]),
        (Box(0, 1, (2,), "bool"), [1, 0], [True, False]),
        (Box(-9, 9, (2,)), Tensor(np.array([1, 2]), [2], "int64"), [1, 2]),
        (MultiBinary(2), np.array([1, 0], np.int8), [1, 0]),
        (MultiBinary(2), [True, False], [1, 0]),
        (MultiDiscrete([3, 3]), np.array([2.0, 1.0]), [2, 1]),
        (Discrete(3), np.int64(2), 2),
        (Discrete(3), np.array([2]), 2),
        (Discrete(3), 2.0, 2),
        (Discrete(3), True, 1),
        (Text(3), np.str_("abc"), "abc"),
        (Tuple([Discrete(3)]), [2], (2,)),
        (Dict({"a": Discrete(3)}), {"a": 1, "extra": object()}, {"a": 1}),
    ],
)
def test_what_can_be_meant_is_cast(space: Space, given: object, meant: object) -> None:
    codec = compile_codec(space, backend=NUMPY)
    np.testing.assert_equal(codec.decode(codec.encode(given)), _arrays(space, meant))


def _arrays(space: Space, value: object) -> object:
    if isinstance(space, Box | MultiBinary | MultiDiscrete):
        return np.array(value, space.dtype)
    return value


@pytest.mark.parametrize(
    ("space", "value", "path"),
    [
        (Box(-1, 1, (4,)), np.zeros(3, np.float32), "$"),
        (Box(-1, 1, (2, 2)), np.zeros(4, np.float32), "$"),
        (Box(-1, 1, (2,)), 0.0, "$"),
        (Box(-1, 1, (2,)), [1j, 0], "$"),
        (Box(-1, 1, (2,)), ["a", "b"], "$"),
        (Box(-1, 1, (2,)), None, "$"),
        (Box(-1, 1, (2,)), [None, 1], "$"),
        (Box(-1, 1, (2,)), [[1], [1, 2]], "$"),
        (Box(-1, 1, (2,)), [1e300, 0], "$"),
        (Box(-1, 1, (1,), "float16"), [70000], "$"),
        (Box(0, 255, (1,), "uint8"), [256], "$"),
        (Box(0, 255, (1,), "uint8"), [-1], "$"),
        (Box(0, 255, (1,), "uint8"), [1.5], "$"),
        (Box(0, 255, (1,), "uint8"), [np.nan], "$"),
        (Box(0, 1, (1,), "bool"), [2], "$"),
        (Box(0, 9, (1,), "int64"), [2**70], "$"),
        (Discrete(3), 3, "$"),
        (Discrete(3), -1, "$"),
        (Discrete(3), 1.5, "$"),
        (Discrete(3), np.nan, "$"),
        (Discrete(3), np.inf, "$"),
        (Discrete(3), [1, 2], "$"),
        (Discrete(3), "1", "$"),
        (Discrete(3), None, "$"),
        (MultiBinary(2), [0, 2], "$"),
        (MultiDiscrete([2, 2]), [1, 2], "$"),
        (MultiDiscrete([2, 2]), [-1, 0], "$"),
        (Text(3), b"abc", "$"),
        (Text(3), "\ud800", "$"),
        (NESTED, {"n": {"x": [1, 2], "y": 300}, "t": ([0, 0], "a")}, "$.n.y"),
        (NESTED, {"n": {"x": [1, 2], "y": 0}, "t": ([0, 0], 1)}, "$.t[1]"),
        (NESTED, {"n": {"x": [1, 2], "y": 0}, "t": ([0, 0],)}, "$.t"),
        (NESTED, {"n": {"x": [1, 2], "y": 0}, "t": None}, "$.t"),
        (NESTED, {"n": {"x": [1, 2]}, "t": ([0, 0], "a")}, "$.n.y"),
        (NESTED, {"n": np.zeros(3), "t": ([0, 0], "a")}, "$.n"),
        (NESTED, None, "$"),
    ],
)
def test_a_value_outside_its_space_is_an_error_at_its_path(
    space: Space, value: object, path: str
) -> None:
    codec = compile_codec(space, backend=NUMPY)
    with pytest.raises(InvalidValueError) as caught:
        codec.encode(value)
    assert caught.value.path == path
    assert path in str(caught.value)


def slab(*numbers: int, text: bytes = b"") -> bytes:
    return b"".join(number.to_bytes(8, "little") for number in numbers) + text


@pytest.mark.parametrize(
    ("space", "leaves", "path"),
    [
        (Box(-1, 1, (2,)), [], "$"),
        (Box(-1, 1, (2,)), [bytes(8), bytes(8)], "$"),
        (Box(-1, 1, (2,)), [bytes(7)], "$"),
        (Box(-1, 1, (2,)), [bytes(16)], "$"),
        (Box(0, 1, (2,), "bool"), [bytes(3)], "$"),
        (Discrete(3), [bytes(4)], "$"),
        (Discrete(3), [slab(3)], "$"),
        (Discrete(3), [slab(2**64 - 1)], "$"),
        (MultiBinary(2), [bytes(1)], "$"),
        (MultiDiscrete([2, 2]), [slab(0, 2)], "$"),
        (MultiDiscrete([2, 2]), [slab(0, 2**64 - 1)], "$"),
        (MultiDiscrete([2, 2]), [slab(0)], "$"),
        (Text(5), [b""], "$"),
        (Text(5), [slab(1)], "$"),
        (Text(5), [slab(0)], "$"),
        (Text(5), [slab(2, 0, 0)], "$"),
        (Text(5), [slab(1, 2, text=b"a")], "$"),
        (Text(5), [slab(1, 2, text=b"abc")], "$"),
        (Text(5), [slab(2**64 - 1, 2)], "$"),
        (Text(5), [slab(1, 2**64 - 1, text=b"ab")], "$"),
        (Text(5), [slab(1, 2, text=b"\xff\xfe")], "$"),
        (NESTED, [bytes(2), slab(1), bytes(2), slab(1, 1, text=b"\xff")], "$.t[1]"),
        (NESTED, [bytes(2), slab(1), bytes(1), slab(1, 0)], "$.t[0]"),
        (NESTED, [bytes(2), slab(1), bytes(2)], "$"),
    ],
)
@pytest.mark.parametrize("backend", [NATIVE, NUMPY], ids=lambda backend: backend.name)
def test_bytes_that_are_no_value_are_an_error_at_their_path(
    space: Space, leaves: list[bytes], path: str, backend: Backend
) -> None:
    with pytest.raises(InvalidValueError) as caught:
        compile_codec(space, backend=backend).decode(leaves)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("space", "leaves", "lanes"),
    [
        (Discrete(3), [slab(1, 1)], 3),
        (Discrete(3), [slab(1)], 2**62),
        (Text(5), [slab(2, 1, 1, text=b"ab")], 3),
        (Text(5), [slab(2, 1, 2**63, text=b"ab")], 2),
        (Tuple([Discrete(3)]), [], 2),
    ],
)
def test_lanes_that_do_not_fit_are_an_error(space: Space, leaves: list[bytes], lanes: int) -> None:
    with pytest.raises(InvalidValueError):
        compile_batch_codec(space, backend=NUMPY).decode(leaves, lanes)


@pytest.mark.parametrize("size", [4, 40])
def test_nan_is_refused_only_where_it_was_asked_for(size: int) -> None:
    space = Dict({"a": Box(-1, 1, (size,))})
    value = np.zeros(size, np.float32)
    value[-1] = np.nan
    lenient = compile_codec(space, backend=NUMPY)
    leaves = lenient.encode({"a": value})
    assert np.isnan(lenient.decode(leaves)["a"][-1])
    strict = compile_codec(space, backend=NUMPY, strict_nan=True)
    for call in (lambda: strict.encode({"a": value}), lambda: strict.decode(leaves)):
        with pytest.raises(InvalidValueError, match="NaN") as caught:
            cast("Any", call)()
        assert caught.value.path == "$.a"
