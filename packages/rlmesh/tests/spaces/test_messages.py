from contextlib import suppress
from typing import Any, cast

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from rlcore import ProtocolException
from rlmesh.codec import NUMPY, compile_batch_codec, compile_codec
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
from rlmesh.spaces.convert import space_from_proto, space_to_proto
from rlmesh.wire.spaces.v1 import spaces_pb2 as pb

EVERYTHING = Dict(
    {
        "box": Box([0, -np.inf], [np.inf, 3], (2,), "float16"),
        "flags": MultiBinary((2, 3)),
        "number": Discrete(5, 2, "int16"),
        "numbers": MultiDiscrete([[2, 3], [4, 5]], start=[[1, 0], [-1, 9]]),
        "rest": Tuple([Text(5), Sequence(Graph(Discrete(4))), OneOf([Discrete(2)])]),
    }
)
PUBLISHED = [
    (Box(-1, 1, (3,)), "0a0103100b520e120c0a04000080bf12040000803f"),
    (Box(-np.inf, np.inf, (2,)), "0a0102100b52020801"),
    (Discrete(4), "10095a020804"),
    (Discrete(5, start=-2), "10095a0d080510feffffffffffffffff01"),
    (MultiBinary(4), "0a010410026200"),
    (MultiDiscrete([3, 300]), "0a010210096a050a0303ac02"),
    (Text(10), "100272040801100a"),
    (
        Dict({"z": Discrete(3), "a": Discrete(5)}),
        "a201160a01610a017a120610095a020805120610095a020803",
    ),
]


@pytest.mark.parametrize(("space", "content"), PUBLISHED, ids=str)
def test_a_space_is_the_published_bytes(space: Space, content: str) -> None:
    assert space_to_proto(space).SerializeToString(deterministic=True).hex() == content
    assert space_from_proto(pb.SpaceSpec.FromString(bytes.fromhex(content))) == space


def test_half_precision_bounds_are_the_published_bytes() -> None:
    uniform = space_to_proto(Box(-1, 1, (1,), "float16")).box.uniform
    assert (uniform.low.hex(), uniform.high.hex()) == ("00bc", "003c")


def test_the_ends_of_wide_integers_survive() -> None:
    for name in ("int64", "uint64"):
        limits = np.iinfo(name)
        space = Box(int(limits.min), int(limits.max), (2,), name)
        again = space_from_proto(space_to_proto(space))
        assert isinstance(again, Box)
        assert again == space
        assert again.high[0] == limits.max


def test_an_unbounded_integer_box_reaches_as_far_as_its_type() -> None:
    message = pb.SpaceSpec(shape=[2], dtype=pb.DATA_TYPE_INT32, box=pb.BoxSpec(unbounded=True))
    space = space_from_proto(message)
    assert isinstance(space, Box)
    assert (space.low[0], space.high[0]) == (-(2**31), 2**31 - 1)


@pytest.mark.parametrize(
    "space",
    [
        Box(-1, 1, ()),
        Box(0, 1, (0, 3)),
        Box([-1, -np.inf, 0], [1, 2, np.inf], (3,)),
        Box([0, 1], [5, 6], (2,), "int8"),
        Box(0, 1, (2,), "bool"),
        Text(5, min_length=0, charset="ba"),
        MultiDiscrete([[2, 3], [4, 5]], start=[[1, 0], [-1, 9]]),
        MultiBinary((2, 3)),
        Dict({}),
        Tuple([]),
        Tuple([Dict({"a": Tuple([Discrete(2)])}), Text(3)]),
        Discrete(5, 2, "int16"),
        Discrete(2, 2**63 - 1, "uint64"),
        MultiDiscrete([200], "int8", start=[-100]),
        Sequence(Box(-1, 1, (2,))),
        Sequence(Dict({"a": Discrete(3)}), stack=True),
        Graph(Box(-1, 1, (2,)), Discrete(3)),
        Graph(Discrete(4)),
        OneOf([Discrete(3), Graph(Discrete(4)), Sequence(Text(3))]),
    ],
    ids=repr,
)
def test_a_space_comes_back_equal(space: Space) -> None:
    again = space_from_proto(space_to_proto(space))
    assert again == space
    assert again.to_dict() == space.to_dict()
    assert space_to_proto(again) == space_to_proto(space)


@pytest.mark.parametrize("space", [Discrete(5, 2, "int16"), MultiDiscrete([3], "int32")], ids=repr)
def test_published_peers_see_64_bit_integers(space: Space) -> None:
    message = space_to_proto(space)
    assert message.dtype == pb.DATA_TYPE_INT64
    message.discrete.ClearField("value_dtype")
    message.multi_discrete.ClearField("value_dtype")
    codec = compile_codec(space, backend=NUMPY)
    (leaf,) = codec.encode(space.sample())
    assert len(leaf) == 8


def test_an_integer_type_of_a_published_peer_is_what_its_values_travel_in() -> None:
    message = pb.SpaceSpec(dtype=pb.DATA_TYPE_UINT8, discrete=pb.DiscreteSpec(n=5))
    space = space_from_proto(message)
    assert (space.dtype, space_to_proto(space)) == ("uint8", message)
    assert compile_codec(space, backend=NUMPY).encode(3) == [b"\3"]


@pytest.mark.parametrize(
    "space",
    [
        MultiDiscrete([10], "uint64", start=[2**63 - 5]),
        MultiDiscrete([200], "int8", start=[-100]),
        MultiDiscrete([[3]], "uint8", start=[[253]]),
    ],
    ids=repr,
)
def test_categories_reach_to_the_ends_of_their_type(space: MultiDiscrete) -> None:
    one, many = compile_codec(space, backend=NUMPY), compile_batch_codec(space, backend=NUMPY)
    ends = [space.start.astype(space.dtype), (space.start + space.nvec - 1).astype(space.dtype)]
    for end in ends:
        assert one.decode(one.encode(end)).tolist() == end.tolist()
    both = many.decode(many.encode(ends, 2), 2)
    assert (both.dtype, both.tolist()) == (space.dtype, [end.tolist() for end in ends])


def test_zeros_and_ones_keep_gymnasiums_type_between_our_peers() -> None:
    space = space_from_proto(space_to_proto(MultiBinary(2, "int8")))
    assert (space.dtype, space == MultiBinary(2)) == ("uint8", True)
    codec = compile_codec(space, backend=NUMPY)
    assert codec.decode(codec.encode([1, 0])).dtype == np.int8


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=40), st.data())
def test_random_bytes_are_a_space_or_a_protocol_error(noise: bytes, data: st.DataObject) -> None:
    whole = space_to_proto(EVERYTHING).SerializeToString()
    at = data.draw(st.integers(0, len(whole)))
    for content in (noise, whole[:at] + noise + whole[at + len(noise) :], whole[:at]):
        try:
            message = pb.SpaceSpec.FromString(content)
        except DecodeError:
            continue
        with suppress(ProtocolException):
            assert isinstance(space_from_proto(message), Space)


def test_peers_that_know_no_start_see_categories_from_zero() -> None:
    message = space_to_proto(MultiDiscrete([3, 3], start=[1, 0]))
    published = pb.SpaceSpec.FromString(message.SerializeToString())
    published.multi_discrete.ClearField("start")
    assert space_from_proto(published) == MultiDiscrete([3, 3])


def test_keys_of_a_peer_stay_in_the_peers_order() -> None:
    children = [space_to_proto(Discrete(2)), space_to_proto(Discrete(3))]
    message = pb.SpaceSpec(dict=pb.DictSpec(keys=["z", "a"], spaces=children))
    space = space_from_proto(message)
    assert isinstance(space, Dict)
    assert list(space) == ["z", "a"]


def uniform(low: bytes, high: bytes) -> pb.BoxSpec:
    return pb.BoxSpec(uniform=pb.UniformBounds(low=low, high=high))


ONE, TWO, NAN = (np.float32(x).tobytes() for x in (1, 2, np.nan))
FLOAT, INT = pb.DATA_TYPE_FLOAT32, pb.DATA_TYPE_INT64


@pytest.mark.parametrize(
    "message",
    [
        pb.SpaceSpec(),
        pb.SpaceSpec(
            shape=[1],
            dtype=cast("Any", 13),
            box=uniform(ONE, TWO),
        ),
        pb.SpaceSpec(shape=[1], box=uniform(ONE, TWO)),
        pb.SpaceSpec(shape=[1], dtype=FLOAT, box=pb.BoxSpec()),
        pb.SpaceSpec(shape=[1], dtype=FLOAT, box=uniform(ONE, TWO[:3])),
        pb.SpaceSpec(shape=[1], dtype=FLOAT, box=uniform(TWO, ONE)),
        pb.SpaceSpec(shape=[1], dtype=FLOAT, box=uniform(NAN, NAN)),
        pb.SpaceSpec(shape=[-1], dtype=FLOAT, box=uniform(ONE, TWO)),
        pb.SpaceSpec(shape=[2**40, 2**40], dtype=FLOAT, box=uniform(ONE, TWO)),
        pb.SpaceSpec(shape=[1] * 99, dtype=FLOAT, box=uniform(ONE, TWO)),
        pb.SpaceSpec(
            shape=[2**40],
            dtype=FLOAT,
            box=pb.BoxSpec(elementwise=pb.ElementwiseBounds(low=ONE, high=TWO)),
        ),
        pb.SpaceSpec(dtype=INT, discrete=pb.DiscreteSpec(n=0)),
        pb.SpaceSpec(dtype=INT, discrete=pb.DiscreteSpec(n=2**63 - 1, start=2**62)),
        pb.SpaceSpec(dtype=pb.DATA_TYPE_UINT8, discrete=pb.DiscreteSpec(n=300)),
        pb.SpaceSpec(dtype=FLOAT, discrete=pb.DiscreteSpec(n=3)),
        pb.SpaceSpec(shape=[4], dtype=INT, multi_binary=pb.MultiBinarySpec()),
        pb.SpaceSpec(shape=[2], dtype=FLOAT, multi_discrete=pb.MultiDiscreteSpec(nvec=[2, 2])),
        pb.SpaceSpec(shape=[3], dtype=INT, multi_discrete=pb.MultiDiscreteSpec(nvec=[2, 2])),
        pb.SpaceSpec(shape=[1], dtype=INT, multi_discrete=pb.MultiDiscreteSpec(nvec=[0])),
        pb.SpaceSpec(dtype=pb.DATA_TYPE_UINT8, text=pb.TextSpec(min_length=-1, max_length=2)),
        pb.SpaceSpec(dtype=pb.DATA_TYPE_UINT8, text=pb.TextSpec(min_length=3, max_length=2)),
        pb.SpaceSpec(dict=pb.DictSpec(keys=["a"])),
        pb.SpaceSpec(dict=pb.DictSpec(keys=["a", "a"], spaces=[space_to_proto(Discrete(2))] * 2)),
        pb.SpaceSpec(dict=pb.DictSpec(keys=[""], spaces=[space_to_proto(Discrete(2))])),
        pb.SpaceSpec(tuple=pb.TupleSpec(spaces=[pb.SpaceSpec()])),
        pb.SpaceSpec(dtype=INT, discrete=pb.DiscreteSpec(n=3, value_dtype=FLOAT)),
        pb.SpaceSpec(dtype=INT, discrete=pb.DiscreteSpec(n=3, value_dtype=cast("Any", 13))),
        pb.SpaceSpec(dtype=INT, discrete=pb.DiscreteSpec(n=300, value_dtype=pb.DATA_TYPE_UINT8)),
        pb.SpaceSpec(
            shape=[2],
            dtype=pb.DATA_TYPE_UINT8,
            multi_binary=pb.MultiBinarySpec(value_dtype=FLOAT),
        ),
        pb.SpaceSpec(sequence=pb.SequenceSpec()),
        pb.SpaceSpec(graph=pb.GraphSpec()),
        pb.SpaceSpec(one_of=pb.OneOfSpec()),
    ],
    ids=repr,
)
def test_a_description_of_nothing_is_a_protocol_error(message: pb.SpaceSpec) -> None:
    with pytest.raises(ProtocolException):
        space_from_proto(message)


def test_the_error_says_which_part_of_a_space_is_wrong() -> None:
    wrong = pb.SpaceSpec(dict=pb.DictSpec(keys=["arm"], spaces=[pb.SpaceSpec()]))
    with pytest.raises(ProtocolException, match=r"\$\[0\]\.arm"):
        space_from_proto(pb.SpaceSpec(tuple=pb.TupleSpec(spaces=[wrong])))
