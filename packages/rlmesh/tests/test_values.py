import copy
import pickle
from typing import Any, cast

import numpy as np
import pytest
from rlcore import InvalidValueError
from rlmesh.values import DTYPES, Tensor

TENSOR = Tensor(np.arange(6, dtype=np.float32), [2, 3], "float32")


def test_a_tensor_says_what_it_holds() -> None:
    assert (TENSOR.shape, TENSOR.dtype, TENSOR.ndim, TENSOR.size) == ([2, 3], "float32", 2, 6)
    assert (TENSOR.nbytes, TENSOR.strides, TENSOR.device) == (24, [12, 4], "cpu")
    assert TENSOR.is_contiguous()
    assert repr(TENSOR) == 'Tensor(dtype="float32", shape=[2, 3], bytes=24)'
    assert TENSOR.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("dtype", list(DTYPES))
def test_every_element_type_comes_back(dtype: str) -> None:
    content = bytes(range(DTYPES[dtype].itemsize * 2))
    content = b"\0\1" if dtype == "bool" else content
    assert Tensor(content, [2], dtype).tobytes() == content
    assert Tensor(content, [2], dtype).dtype == dtype


def test_a_tensor_equals_another_by_its_contents() -> None:
    same = Tensor(TENSOR, [2, 3], "float32")
    for twin in (same, TENSOR.copy(), pickle.loads(pickle.dumps(TENSOR)), copy.deepcopy(TENSOR)):
        assert twin == TENSOR
        assert hash(twin) == hash(TENSOR)
    assert TENSOR.reshape([3, 2]) != TENSOR
    assert Tensor(bytes(4), [1], "float32") != Tensor(bytes(4), [1], "int32")
    assert TENSOR != 3


def test_the_buffer_is_copied() -> None:
    buffer = bytearray(4)
    tensor = Tensor(buffer, [4], "uint8")
    buffer[0] = 9
    assert tensor.tobytes() == bytes(4)


def test_a_buffer_with_gaps_is_compacted() -> None:
    columns = np.arange(6, dtype=np.int16).reshape(2, 3)[:, ::2]
    assert Tensor(columns, [2, 2], "int16").tolist() == [[0, 2], [3, 5]]


def test_numpy_sees_the_memory_and_cannot_write_to_it() -> None:
    view = np.asarray(TENSOR)
    assert np.shares_memory(view, np.asarray(TENSOR))
    assert view.tolist() == TENSOR.tolist()
    with pytest.raises(ValueError, match="read-only"):
        view[0, 0] = 9
    assert TENSOR.buffer.readonly
    assert (TENSOR.buffer.shape, TENSOR.buffer.format) == ((2, 3), "f")
    assert np.asarray(TENSOR, dtype=np.float64).dtype == np.float64
    assert np.array(TENSOR, copy=True).flags.writeable


def test_dlpack_passes_the_elements_both_ways() -> None:
    assert TENSOR.__dlpack_device__() == (1, 0)
    assert np.from_dlpack(cast("Any", TENSOR)).tolist() == TENSOR.tolist()
    assert Tensor.from_dlpack(np.asarray([1, 2], np.int64)) == Tensor(
        np.array([1, 2], np.int64), [2], "int64"
    )
    with pytest.raises(BufferError):
        TENSOR.__dlpack__(stream=1)


def test_reshape_takes_one_dimension_from_the_others() -> None:
    assert TENSOR.reshape([-1]).shape == [6]
    for shape in ([4], [-1, -1]):
        with pytest.raises(InvalidValueError):
            TENSOR.reshape(shape)


@pytest.mark.parametrize("shape", [[], [0], [2, 0, 3]])
def test_scalars_and_nothing_are_tensors(shape: list[int]) -> None:
    tensor = Tensor(bytes(4 * (shape == [])), shape, "float32")
    assert tensor.shape == shape


@pytest.mark.parametrize(
    ("buffer", "shape", "dtype"),
    [
        (bytes(4), [2], "float32"),
        (bytes(3), [1], "float32"),
        (bytes(4), [-1], "float32"),
        (bytes(4), [1], "bfloat16"),
        (bytes(4), [1], "<f4"),
        (bytes(4), [2**40, 2**40], "float32"),
        ([1.0], [1], "float32"),
    ],
)
def test_what_is_no_tensor_is_an_error(buffer: object, shape: list[int], dtype: str) -> None:
    with pytest.raises(InvalidValueError):
        Tensor(buffer, shape, dtype)


def test_a_negative_dimension_is_an_overflow_as_well() -> None:
    with pytest.raises(OverflowError, match="shape") as caught:
        Tensor(b"", [-1], "int8")
    assert isinstance(caught.value, InvalidValueError)


def test_any_byte_but_zero_is_true() -> None:
    tensor = Tensor(b"\x02\x00", [2], "bool")
    assert bytes(tensor.buffer) == b"\x01\x00"
    assert tensor == Tensor(b"\x01\x00", [2], "bool")
