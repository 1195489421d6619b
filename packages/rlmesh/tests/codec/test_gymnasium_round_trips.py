import string
from contextlib import suppress
from typing import Any, cast

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces as gym
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rlcore import InvalidValueError
from rlmesh.codec import NATIVE, NUMPY, Buffer, compile_batch_codec, compile_codec
from rlmesh.spaces import (
    Sequence,
    Text,
    UnsupportedSpaceError,
    from_gymnasium_space,
    to_gymnasium_space,
)
from rlmesh.spaces.convert import space_from_proto, space_to_proto
from rlmesh.wire.spaces.v1 import spaces_pb2 as pb

GymSpace = gymnasium.Space[Any]  # Any: the strategies below make all kinds

FLOATS = ("float16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
EXACT = 2**53 - 1
SHAPES = st.lists(st.integers(0, 3), max_size=3).map(tuple)
KEYS = st.text(string.ascii_letters + "é.$[0]", min_size=1, max_size=4)


@st.composite
def boxes(draw: st.DrawFn, dimensions: int = 0) -> GymSpace:
    shape = draw(SHAPES.filter(lambda dims: len(dims) >= dimensions))
    dtype = np.dtype(draw(st.sampled_from(FLOATS + INTEGERS)))
    if dtype.kind == "f":
        low = draw(st.sampled_from([-np.inf, -1.0, 0.0]))
        high = draw(st.sampled_from([np.inf, 1.0, 2.0]))
        lows = np.full(shape, low, dtype)
        if lows.size and draw(st.booleans()):
            lows.flat[0] = -1.5
        return gym.Box(lows, np.full(shape, high, dtype), shape, dtype.type)
    # gymnasium samples integers as 64-bit floats, up to one more than the bound.
    limits = np.iinfo(dtype)
    ends = st.integers(max(int(limits.min), -EXACT), min(int(limits.max), EXACT))
    low_int, high_int = sorted((draw(ends), draw(ends)))
    lows, highs = np.full(shape, low_int, dtype), np.full(shape, high_int, dtype)
    return gym.Box(lows, highs, shape, dtype.type)


@st.composite
def multi_discretes(draw: st.DrawFn) -> GymSpace:
    shape = draw(st.lists(st.integers(1, 3), min_size=1, max_size=2))
    size = int(np.prod(shape))
    counts = draw(st.lists(st.integers(1, 400), min_size=size, max_size=size))
    starts = draw(st.lists(st.integers(-5, 5), min_size=size, max_size=size))
    dtype: Any = draw(st.sampled_from([np.int64, np.int32, np.int16]))  # Any: gymnasium's own
    return gym.MultiDiscrete(
        np.array(counts).reshape(shape), dtype, start=np.array(starts).reshape(shape)
    )


LEAVES: st.SearchStrategy[GymSpace] = st.one_of(
    boxes(),
    st.builds(
        gym.Discrete,
        st.integers(1, 500),
        start=st.integers(-9, 9),
        dtype=st.sampled_from([np.int64, np.int32, np.int16]),
    ),
    st.integers(1, 5).map(gym.MultiBinary),
    st.just(gym.MultiBinary((2, 3))),
    multi_discretes(),
    st.builds(
        gym.Text,
        max_length=st.integers(2, 8),
        min_length=st.integers(0, 2),
        charset=st.sampled_from([string.ascii_letters + string.digits, "cab", "é\U0001f600"]),
    ),
)
# Gymnasium warns about its own samples when it stacks arrays without dimensions.
FEATURES = st.one_of(boxes(dimensions=1), st.builds(gym.Discrete, st.integers(1, 9)))


def _containers(children: st.SearchStrategy[GymSpace]) -> st.SearchStrategy[GymSpace]:
    return st.one_of(
        st.lists(children, max_size=3).map(gym.Tuple),
        st.dictionaries(KEYS, children, max_size=3).map(gym.Dict),
        children.map(gym.Sequence),
        FEATURES.map(lambda item: gym.Sequence(item, stack=True)),
        FEATURES.map(lambda item: gym.Sequence(gym.Dict({"a": item}), stack=True)),
        st.builds(gym.Graph, FEATURES, st.none() | FEATURES),
        st.lists(children, min_size=1, max_size=3).map(gym.OneOf),
    )


SPACES: st.SearchStrategy[GymSpace] = st.recursive(LEAVES, _containers, max_leaves=6)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SPACES, st.integers(0, 2**31))
def test_every_gymnasium_sample_arrives_as_it_was(space: GymSpace, seed: int) -> None:
    space.seed(seed)
    ours = from_gymnasium_space(space)
    remote = space_from_proto(pb.SpaceSpec.FromString(space_to_proto(ours).SerializeToString()))
    assert remote == ours
    here, there = compile_codec(ours, backend=NUMPY), compile_codec(remote, backend=NUMPY)
    values = [space.sample() for _ in range(3)]
    decoded = [there.decode(here.encode(value)) for value in values]
    assert all(ours.contains(value) and space.contains(value) for value in decoded)
    assert _plain(decoded) == _plain(values)
    owned = [bytearray(leaf) for leaf in here.encode(values[0])]
    assert _plain(there.decode_owned([memoryview(leaf) for leaf in owned])) == _plain(values[0])
    native = compile_codec(remote, backend=NATIVE)
    assert native.encode(native.decode(here.encode(values[0]))) == here.encode(values[0])


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SPACES, st.integers(0, 2**31))
def test_our_samples_belong_to_the_gymnasium_space(space: GymSpace, seed: int) -> None:
    ours = from_gymnasium_space(space).using(NUMPY)
    ours.seed(seed)
    again = to_gymnasium_space(ours)
    assert from_gymnasium_space(again) == _printable(ours)
    if not _has_text(space):
        sample = ours.sample()
        assert space.contains(sample)
        assert again.contains(sample)


def _plain(value: Any) -> Any:  # Any: trees of samples
    """Types, shapes and numbers; what gymnasium writes differently for the same value is one."""
    if hasattr(value, "keys"):
        return {key: _plain(value[key]) for key in sorted(value)}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in cast("list[Any]", value)]
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(cast("Any", value))
        return (array.dtype.name, array.shape, array.tobytes()) if array.ndim else array.item()
    return value


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SPACES, st.integers(0, 2**31), st.integers(1, 4))
def test_many_lanes_arrive_as_gymnasium_batches_them(
    space: GymSpace, seed: int, lanes: int
) -> None:
    space.seed(seed)
    values = [space.sample() for _ in range(lanes)]
    empty: Any = create_empty_array(space, lanes)  # Any: gymnasium's own union
    batched = concatenate(space, values, empty)
    codec = compile_batch_codec(from_gymnasium_space(space), backend=NUMPY)
    leaves = codec.encode(batched, lanes)
    assert codec.encode(values, lanes) == leaves
    decoded = codec.decode(leaves, lanes)
    assert _plain(decoded) == _plain(batched)
    assert batch_space(space, lanes).contains(decoded)
    assert _plain(codec.join(values)) == _plain(batched)
    assert _plain(codec.split(decoded, lanes)) == _plain(values)
    owned = [memoryview(bytearray(leaf)) for leaf in leaves]
    assert _plain(codec.decode_owned(owned, lanes)) == _plain(batched)
    if codec.fixed_sizes is not None:
        assert [len(leaf) for leaf in leaves] == [size * lanes for size in codec.fixed_sizes]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SPACES, st.integers(1, 3), st.data())
def test_hostile_bytes_are_an_error_of_ours_or_a_value(
    space: GymSpace, lanes: int, data: st.DataObject
) -> None:
    ours = from_gymnasium_space(space)
    one, many = compile_codec(ours, backend=NUMPY), compile_batch_codec(ours, backend=NUMPY)
    space.seed(7)
    values = [space.sample() for _ in range(lanes)]
    leaves: list[Buffer] = [data.draw(_damaged(bytes(leaf))) for leaf in many.encode(values, lanes)]
    with suppress(InvalidValueError):
        value = many.decode(leaves, lanes)
        assert len(many.split(value, lanes)) == lanes
    with suppress(InvalidValueError):
        one.encode(one.decode(leaves))


def _damaged(content: bytes) -> st.SearchStrategy[bytes]:
    numbers = st.sampled_from([0, 1, 2**31, 2**62, 2**63, 2**64 - 1]).map(
        lambda number: number.to_bytes(8, "little")
    )
    places = st.integers(0, len(content))
    return st.one_of(
        st.just(content),
        st.binary(max_size=64),
        places.map(lambda at: content[:at]),
        st.binary(min_size=1, max_size=9).map(lambda more: content + more),
        st.tuples(places, numbers).map(lambda a: content[: a[0]] + a[1] + content[a[0] + 8 :]),
    )


def _has_text(space: GymSpace) -> bool:
    children: Any = getattr(space, "spaces", ())  # Any: gymnasium leaves their type open
    spaces = children.values() if hasattr(children, "values") else children
    if isinstance(space, gym.Sequence):
        return _has_text(space.feature_space)
    return isinstance(space, gym.Text) or any(_has_text(child) for child in spaces)


def _printable(space: Any) -> Any:
    """Gymnasium has no word for any character: it comes back as the printable ones."""
    if isinstance(space, Text):
        charset = space.charset or string.printable
        return Text(space.max_length, space.min_length, charset)
    if hasattr(space, "items"):
        return type(space)({key: _printable(child) for key, child in space.items()})
    if hasattr(space, "spaces"):
        return type(space)([_printable(child) for child in space])
    if isinstance(space, Sequence):
        return Sequence(_printable(space.feature_space), space.stack)
    return space


def test_the_default_characters_of_gymnasium_are_the_same_here() -> None:
    ours = from_gymnasium_space(gym.Text(5))
    assert isinstance(ours, Text)
    assert frozenset(ours.charset) == gym.Text(5).character_set
    assert to_gymnasium_space(ours) == gym.Text(5)


@pytest.mark.parametrize(
    "space",
    [
        gym.Dict({cast("str", 1): gym.Discrete(2)}),
        None,
        "Box",
    ],
    ids=repr,
)
def test_a_space_without_words_is_a_type_error_of_ours(space: object) -> None:
    with pytest.raises(UnsupportedSpaceError) as caught:
        from_gymnasium_space(space)
    assert isinstance(caught.value, TypeError)
    assert caught.value.message
