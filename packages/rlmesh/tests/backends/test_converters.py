"""What each framework makes of a `Tensor`, and what travels of its arrays."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import jax as typed_jax
import numpy as np
import pytest
import rlmesh.jax
import rlmesh.numpy
import rlmesh.torch
import torch
from rlcore import ConfigurationError, InvalidValueError
from rlmesh import Tensor
from rlmesh.backends.frameworks import backend_of
from rlmesh.backends.host import host
from rlmesh.codec import compile_codec
from rlmesh.codec.tensors import tensor_of
from rlmesh.values import DTYPES, NotAnArray

FLOATS = Tensor(np.arange(6, dtype=np.float32), [2, 3], "float32")
jax: Any = typed_jax  # Any: checkers cannot read the types of most of jax
jnp: Any = jax.numpy
NARROW = [name for name in DTYPES if DTYPES[name].itemsize < 8]


@pytest.fixture
def x64() -> Iterator[None]:
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


@pytest.mark.parametrize("dtype", list(DTYPES))
def test_every_element_type_reaches_torch_and_comes_back(dtype: str) -> None:
    tensor = Tensor(np.array([0, 1, 1], DTYPES[dtype]), [3], dtype)

    made = rlmesh.torch.as_tensor(tensor)

    assert str(made.dtype) == f"torch.{dtype}"
    assert rlmesh.torch.from_tensor(made) == tensor


@pytest.mark.parametrize("dtype", NARROW)
def test_every_element_type_of_32_bits_reaches_jax_and_comes_back(dtype: str) -> None:
    tensor = Tensor(np.array([0, 1, 1], DTYPES[dtype]), [3], dtype)

    made = rlmesh.jax.asarray(tensor)

    assert made.dtype.name == dtype
    assert rlmesh.jax.from_array(made) == tensor


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64"])
def test_64_bits_stay_64_in_the_x64_mode_of_jax(dtype: str) -> None:
    tensor = Tensor(np.array([0, 2**62], DTYPES[dtype]), [2], dtype)

    made = rlmesh.jax.asarray(tensor)

    assert made.dtype.name == dtype
    assert rlmesh.jax.from_array(made) == tensor


def test_jax_says_once_that_64_bits_become_32() -> None:
    backend = backend_of("jax")
    numbers = np.array([1, -1], np.int64)

    with pytest.warns(UserWarning, match="int64 values as int32.*jax_enable_x64"):
        made = backend.owned(numbers)

    assert (made.dtype.name, made.tolist()) == ("int32", [1, -1])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert backend.leaf(np.array([0.5])).dtype.name == "float32"
    assert said == []


@pytest.mark.filterwarnings("ignore:jax holds:UserWarning")
def test_jax_refuses_an_integer_that_32_bits_cannot_hold() -> None:
    with pytest.raises(InvalidValueError, match="jax_enable_x64"):
        backend_of("jax").owned(np.array([2**40], np.int64))
    with pytest.raises(InvalidValueError, match="jax_enable_x64"):
        rlmesh.jax.asarray(2**40)


@pytest.mark.parametrize("dtype", list(DTYPES))
def test_every_element_type_reaches_numpy_and_comes_back(dtype: str) -> None:
    tensor = Tensor(np.array([0, 1, 1], DTYPES[dtype]), [3], dtype)

    made = rlmesh.numpy.asarray(tensor)
    again = rlmesh.numpy.from_array(made)
    made[0] = 1

    assert made.dtype == DTYPES[dtype]
    assert again == tensor  # the array was a copy


def test_numbers_become_arrays_without_dimensions_and_come_back_as_numbers() -> None:
    assert rlmesh.numpy.asarray(2.5).shape == ()
    assert rlmesh.torch.as_tensor(2.5).dtype == torch.float32
    assert rlmesh.jax.asarray(2).shape == ()
    for number in (
        rlmesh.numpy.from_array(np.float64(2.5)),
        rlmesh.numpy.from_array(np.array(2.5)),
        rlmesh.torch.from_tensor(torch.tensor(2.5)),
        rlmesh.jax.from_array(jnp.array(2.5)),
    ):
        assert (type(number), number) == (float, 2.5)
    assert rlmesh.torch.from_tensor(torch.tensor(True)) is True
    assert type(rlmesh.jax.from_array(jnp.array(3))) is int


def test_as_tensor_shares_the_memory_of_a_tensor_that_may_be_written_to() -> None:
    tensor = Tensor.over(np.zeros(3, np.float32))

    shared = rlmesh.torch.as_tensor(tensor)
    apart = rlmesh.torch.as_tensor(tensor, copy=True)
    shared[0] = 7

    assert tensor.tolist() == [7, 0, 0]
    assert np.asarray(apart).tolist() == [0, 0, 0]


def test_as_tensor_never_writes_to_bytes() -> None:
    content = bytes([5])
    tensor = Tensor(content, [1], "uint8")

    rlmesh.torch.as_tensor(tensor)[0] = 9

    assert tensor.tolist() == [5]
    assert content == b"\5"


def test_from_tensor_detaches_and_puts_strides_in_order() -> None:
    weights = torch.arange(6.0).reshape(2, 3).requires_grad_()

    tensor = rlmesh.torch.from_tensor(weights.T)

    assert tensor == Tensor(np.array([[0, 3], [1, 4], [2, 5]], np.float32), [3, 2], "float32")


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2"])
def test_short_floats_become_float32_which_holds_each_of_them(dtype: str) -> None:
    wanted = Tensor(np.array([1.5, -0.25], np.float32), [2], "float32")
    in_torch = torch.tensor([1.5, -0.25]).to(getattr(torch, dtype))
    in_jax = jnp.array([1.5, -0.25], dtype=dtype)

    assert rlmesh.torch.from_tensor(in_torch) == wanted
    assert rlmesh.jax.from_array(in_jax) == wanted
    assert rlmesh.numpy.from_array(np.asarray(in_jax)) == wanted


def test_foreign_byte_orders_are_put_right() -> None:
    assert rlmesh.numpy.from_array(np.array([1, 256], ">i4")) == Tensor(
        np.array([1, 256], "<i4"), [2], "int32"
    )


@pytest.mark.parametrize(
    "array",
    [np.array([1j]), np.array([None]), np.array([1], np.longdouble), np.array(["a"])],
    ids=lambda array: array.dtype.name,
)
def test_elements_that_cannot_travel_are_refused(array: Any) -> None:
    with pytest.raises(InvalidValueError, match="cannot travel"):
        rlmesh.numpy.from_array(array)


def test_what_is_no_array_of_the_framework_is_a_type_error() -> None:
    for convert in (
        rlmesh.numpy.from_array,
        rlmesh.torch.from_tensor,
        rlmesh.jax.from_array,
        rlmesh.numpy.asarray,
        rlmesh.torch.as_tensor,
        rlmesh.jax.asarray,
    ):
        with pytest.raises(TypeError) as caught:
            convert("nothing")
        assert isinstance(caught.value, NotAnArray)


def test_arrays_of_every_library_come_to_the_host_by_themselves() -> None:
    numbers = [1.0, 2.0]
    for array in (torch.tensor(numbers, requires_grad=True), jnp.array(numbers)):
        found = host(array)
        assert isinstance(found, np.ndarray)
        assert found.tolist() == numbers
    assert host(numbers) is numbers


def test_arrays_within_lists_are_values_too() -> None:
    space = rlmesh.spaces.Box(-1, 1, (2,))
    weight = torch.tensor(0.5, requires_grad=True)
    short = torch.tensor(0.5, dtype=torch.bfloat16)

    assert space.contains([weight, short])
    assert space.contains([weight, 1])
    assert space.contains((jnp.float32(0.5), jnp.array(0.5, jnp.bfloat16)))
    assert not space.contains([weight, 5])
    assert not space.contains([weight, object()])
    assert not space.contains([weight])


def test_foreign_arrays_of_metadata_keep_what_they_hold() -> None:
    for array in (
        torch.tensor([0.5, 1], requires_grad=True),
        torch.tensor([0.5, 1], dtype=torch.bfloat16),
        jnp.array([0.5, 1], jnp.bfloat16),
    ):
        found = tensor_of(array)
        assert found is not None
        assert (found.dtype.name, found.tolist()) == ("float32", [0.5, 1])
    assert tensor_of(torch.tensor(0.5)) is None
    assert tensor_of(torch.ones(1, device="meta")) is None
    assert tensor_of(torch.tensor([1j])) is None


def test_decoded_arrays_are_tensors_over_their_own_memory() -> None:
    array = np.zeros(2, np.float32)

    over = backend_of("torch").owned(array)
    apart = backend_of("torch").leaf(array)
    array[0] = 3

    assert over.tolist() == [3, 0]
    assert apart.tolist() == [0, 0]
    over[1] = 4
    assert array.tolist() == [3, 4]


def test_bytes_that_must_not_change_are_copied_into_a_tensor() -> None:
    content = np.frombuffer(bytes(4), np.uint8)

    backend_of("torch").owned(content)[0] = 1

    assert content.tolist() == [0, 0, 0, 0]


def test_a_device_is_tried_when_it_is_named() -> None:
    assert backend_of("torch", "cpu").owned(np.zeros(1)).device.type == "cpu"
    assert backend_of("torch", torch.device("meta")).owned(np.zeros(1)).device.type == "meta"
    placed = backend_of("jax", "cpu:0").owned(np.zeros(1, np.int8))
    assert placed.devices() == {jax.devices("cpu")[0]}
    for framework, device in [
        ("torch", "nonsense"),
        ("torch", "cuda:99"),
        ("torch", object()),
        ("jax", "nonsense"),
        ("jax", "cpu:99"),
        ("numpy", "cpu"),
        ("native", "cpu"),
    ]:
        with pytest.raises(ConfigurationError, match="device"):
            backend_of(framework, device)  # type: ignore[arg-type]  # a tuple's str


def test_spaces_sample_in_their_framework_and_know_its_values() -> None:
    spec = rlmesh.spaces.Dict(
        {"box": rlmesh.spaces.Box(0, 1, (2,)), "n": rlmesh.spaces.Discrete(3)}
    )
    kinds = {rlmesh.numpy: np.ndarray, rlmesh.torch: torch.Tensor, rlmesh.jax: jax.Array}
    for module, kind in kinds.items():
        space = module.space_from_spec(spec)
        value: Any = space.sample()
        assert isinstance(value["box"], kind)
        assert space.contains(value)
        assert not space.contains({**value, "box": value["box"] + 2})


def test_a_space_of_a_framework_pickles_and_copies() -> None:
    spec = rlmesh.spaces.Box(0, 1, (2,))
    for space in (
        rlmesh.torch.space_from_spec(spec, device="cpu"),
        rlmesh.jax.space_from_spec(spec, device="cpu"),
    ):
        for twin in (pickle.loads(pickle.dumps(space)), copy.deepcopy(space)):
            assert type(twin.sample()) is type(space.sample())


@pytest.mark.parametrize("dtype", list(DTYPES))
def test_every_element_type_passes_through_dlpack_both_ways(dtype: str) -> None:
    tensor = Tensor(np.array([0, 1, 1], DTYPES[dtype]), [3], dtype)

    library: Any = torch  # Any: this function has no type that checkers can read
    for exporter in (library.from_dlpack(tensor), np.from_dlpack(tensor)):
        assert Tensor.from_dlpack(exporter) == tensor


def test_a_dlpack_capsule_is_read_and_strides_are_compacted() -> None:
    rows = torch.arange(4.0).reshape(2, 2)

    assert Tensor.from_dlpack(rows.T.__dlpack__()).tolist() == [[0, 2], [1, 3]]


def test_the_libraries_take_a_tensor_for_an_array() -> None:
    libraries: tuple[Any, ...] = (jnp.asarray, torch.as_tensor, np.asarray)  # Any: as above
    for take in libraries:
        made = take(FLOATS)
        assert str(made.dtype).endswith("float32")
        assert made.tolist() == FLOATS.tolist()


def test_what_dlpack_cannot_pass_is_refused() -> None:
    with pytest.raises(TypeError, match="str cannot be read"):
        Tensor.from_dlpack("text")
    for odd in (
        torch.ones(2, requires_grad=True),
        torch.ones(2, dtype=torch.bfloat16),
        torch.empty(2, device="meta"),
        torch.ones(2, dtype=torch.complex64),
    ):
        with pytest.raises(InvalidValueError):
            Tensor.from_dlpack(odd)


def test_a_copy_through_dlpack_may_be_written_to() -> None:
    own = np.from_dlpack(FLOATS, copy=True)
    own[0, 0] = 9

    assert FLOATS.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert not np.from_dlpack(FLOATS).flags.writeable


def test_received_memory_becomes_a_tensor_without_a_copy() -> None:
    received = bytearray(4 * 10_000)
    codec = compile_codec(rlmesh.spaces.Box(-1, 1, (10_000,)), backend=backend_of("torch"))

    tensor = codec.decode_owned([memoryview(received)])
    tensor[1] = 1.0

    assert received[4:8] == np.float32(1).tobytes()
