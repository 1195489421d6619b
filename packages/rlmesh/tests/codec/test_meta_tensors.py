import time
from contextlib import suppress
from datetime import date
from importlib import import_module
from typing import Any, cast

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from rlcore import ProtocolException
from rlmesh.codec import decode_meta, encode_meta, encode_meta_lenient
from rlmesh.values import DTYPES, Tensor
from rlmesh.wire.spaces.v1.spaces_pb2 import MetaMap, MetaTensor, MetaValue

ARRAYS = hnp.arrays(
    st.sampled_from(list(DTYPES)).map(np.dtype), hnp.array_shapes(min_dims=0, min_side=0)
)
TREES = st.recursive(
    ARRAYS | st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=3), children, max_size=3)
    ),
    max_leaves=8,
)


def plain(value: Any) -> Any:  # Any: trees of arrays
    if isinstance(value, np.ndarray):
        array = np.asarray(cast("Any", value))
        return array.dtype.name, array.shape, array.tobytes()
    if isinstance(value, dict):
        return {key: plain(child) for key, child in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in cast("list[Any]", value)]
    return value


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.text(max_size=3), TREES, max_size=3))
def test_arrays_anywhere_keep_their_type_and_shape(info: dict[str, Any]) -> None:
    message, odd = encode_meta_lenient(info, tensors=True)
    assert odd == []
    arrived = decode_meta(MetaMap.FromString(message.SerializeToString()))
    assert plain(arrived) == plain(info)


def test_an_array_that_arrived_belongs_to_the_reader() -> None:
    array = decode_meta(encode_meta({"a": np.zeros((2, 2), np.float16)}, tensors=True))["a"]
    array[0, 0] = 1
    assert array.base is None


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=">i4").reshape(2, 3),
        np.arange(6, dtype="i4").reshape(3, 2).T,
        np.arange(12, dtype="i4")[::2],
        Tensor(np.arange(6, dtype="i4"), [6], "int32"),
    ],
    ids=["big-endian", "transposed", "strided", "tensor"],
)
def test_an_array_in_any_order_arrives_with_its_numbers(array: Any) -> None:
    arrived = decode_meta(encode_meta({"a": array}, tensors=True))["a"]
    assert arrived.dtype == np.int32
    assert arrived.tolist() == array.tolist()


@pytest.mark.slow
def test_the_arrays_of_torch_arrive_and_its_scalars_are_numbers() -> None:
    torch: Any = import_module("torch")  # not above: it takes a second
    weights = torch.ones((2, 2), requires_grad=True)
    info = {"weights": weights, "half": torch.ones(2, dtype=torch.bfloat16), "loss": weights.sum()}
    message, odd = encode_meta_lenient(info, tensors=True)
    arrived = decode_meta(message)
    assert odd == []
    assert plain(arrived["weights"]) == plain(np.ones((2, 2), np.float32))
    assert plain(arrived["half"]) == plain(np.ones(2, np.float32))  # the nearest that all know
    assert arrived["loss"] == 4.0


@pytest.mark.slow
def test_the_arrays_of_jax_arrive() -> None:
    jnp: Any = import_module("jax.numpy")
    arrived = decode_meta(encode_meta({"a": jnp.arange(3), "b": jnp.float32(2)}, tensors=True))
    assert plain(arrived["a"]) == plain(np.arange(3, dtype=np.int32))
    assert arrived["b"] == 2.0


def test_arrays_are_lists_for_readers_that_did_not_say_they_know_them() -> None:
    info = {"a": np.arange(3, dtype="u1"), "b": [np.zeros((1, 2), "f4")]}
    assert decode_meta(encode_meta(info)) == {"a": [0, 1, 2], "b": [[[0.0, 0.0]]]}
    assert not encode_meta(info).entries["a"].HasField("tensor")


def test_scalars_of_numpy_are_numbers_either_way() -> None:
    arrived = decode_meta(encode_meta({"a": np.float32(0.5), "b": np.bool_(True)}, tensors=True))
    assert arrived == {"a": 0.5, "b": True}
    assert type(arrived["b"]) is bool


@pytest.mark.parametrize(
    ("array", "arrived", "odd"),
    [
        (np.array(["a", "b"]), ["a", "b"], ["$.a"]),
        (np.array([1, "a"], object), [1, "a"], []),
        (np.ma.MaskedArray([1, 2], [False, True]), [1, None], ["$.a"]),
        (np.array([1 + 2j]), ["(1+2j)"], ["$.a", "$.a[0]"]),
        (np.array(["2020-01-02"], "M8[D]"), ["2020-01-02"], ["$.a", "$.a[0]"]),
        (np.array([date(2020, 1, 2)], object), ["2020-01-02"], ["$.a[0]"]),
    ],
    ids=["text", "objects", "masked", "complex", "dates", "date objects"],
)
def test_arrays_of_other_things_are_sanitised_as_ever(
    array: Any, arrived: list[object], odd: list[str]
) -> None:
    message, changed = encode_meta_lenient({"a": array, "b": np.zeros(2, "u1")}, tensors=True)
    value = decode_meta(message)
    assert (value["a"], changed) == (arrived, odd)
    assert plain(value["b"]) == plain(np.zeros(2, "u1"))


def test_a_large_array_costs_no_work_for_each_element() -> None:
    info = {"a": [{"image": np.zeros((3000, 3000, 3), np.uint8)}]}
    started = time.process_time()
    message, odd = encode_meta_lenient(info, tensors=True)
    arrived = decode_meta(message)
    # As lists, these 27 million numbers would take tens of seconds.
    assert time.process_time() - started < 2
    assert odd == []
    assert arrived["a"][0]["image"].shape == (3000, 3000, 3)


def test_an_array_that_no_message_can_carry_is_described() -> None:
    huge = np.broadcast_to(np.uint8(0), (2**31, 4))
    message, odd = encode_meta_lenient({"a": huge, "b": np.zeros(2, "u1")}, tensors=True)
    assert odd == ["$.a"]
    assert "too large" in decode_meta(message)["a"]
    assert plain(decode_meta(message)["b"]) == plain(np.zeros(2, "u1"))


@pytest.mark.parametrize(
    "tensor",
    [
        MetaTensor(),
        MetaTensor(dtype=cast("Any", 13), shape=[1], data=b"\0"),
        MetaTensor(dtype=cast("Any", 2), shape=[2], data=b"\0"),
        MetaTensor(dtype=cast("Any", 2), shape=[-1, -1], data=b"\0"),
        MetaTensor(dtype=cast("Any", 2), shape=[2**62, 4], data=b""),
        MetaTensor(dtype=cast("Any", 2), shape=[0, 2**62, 2**62], data=b""),
        MetaTensor(dtype=cast("Any", 2), shape=[1] * 100, data=b"\0"),
        MetaTensor(dtype=cast("Any", 11), shape=[1], data=b"\0\0\0"),
    ],
    ids=str,
)
def test_an_array_that_cannot_be_is_an_error_of_ours(tensor: MetaTensor) -> None:
    message = MetaMap()
    message.entries["a"].CopyFrom(MetaValue(tensor=tensor))
    with pytest.raises(ProtocolException):
        decode_meta(message)


def test_any_byte_but_zero_is_true() -> None:
    message = MetaMap()
    message.entries["a"].CopyFrom(
        MetaValue(tensor=MetaTensor(dtype=cast("Any", 1), shape=[3], data=b"\0\1\7"))
    )
    assert decode_meta(message)["a"].tolist() == [False, True, True]


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60), st.data())
def test_random_bytes_are_metadata_or_an_error_of_ours(noise: bytes, data: st.DataObject) -> None:
    info = {"a": np.zeros((2, 3), np.float32), "b": [{"c": np.zeros(0, "u1")}, "text", 1.5, None]}
    whole = encode_meta(info, tensors=True).SerializeToString()
    at = data.draw(st.integers(0, len(whole)))
    for content in (noise, whole[:at] + noise[:3] + whole[at + 3 :], whole[:at]):
        with suppress(DecodeError, ProtocolException):
            arrived = decode_meta(MetaMap.FromString(content))
            assert encode_meta_lenient(arrived, tensors=True)[1] == []


@pytest.mark.parametrize(
    "array",
    [
        np.array(["a", "b"]),
        np.zeros(2, np.longdouble),
        np.zeros(2, [("x", "i4"), ("y", "f4")]),
        np.ma.MaskedArray([1, 2], [True, False]),
        np.array([], "datetime64[s]"),
    ],
    ids=lambda array: str(array.dtype),
)
def test_an_array_that_arrives_as_a_list_is_told_of(array: Any) -> None:
    message, changed = encode_meta_lenient({"a": array, "b": 1}, tensors=True)
    assert changed[0] == "$.a"
    assert isinstance(decode_meta(message)["a"], list)


def test_an_array_of_objects_is_a_list_of_them() -> None:
    array = np.array([None, "a"], object)
    message, changed = encode_meta_lenient({"a": array}, tensors=True)
    assert (decode_meta(message), changed) == ({"a": [None, "a"]}, [])
