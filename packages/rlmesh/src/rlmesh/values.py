"""What observations and actions are made of: the array leaf, and what a backend makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, Protocol, TypeAlias, cast, final

import numpy as np
from numpy.typing import NDArray
from rlcore import InvalidValueError

Array: TypeAlias = NDArray[Any]  # Any: an array of whichever of the twelve element types
Value: TypeAlias = object
Buffer: TypeAlias = bytes | memoryview
"""Bytes of a leaf; a memoryview is one-dimensional, contiguous and of format "B"."""

DTYPES: Final = {
    name: np.dtype(f"<{np.dtype(name).str[1:]}")
    for name in (
        "bool",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "float32",
        "float64",
    )
}
"""The element types that leaves can have, little-endian as they travel."""


class NegativeDimension(InvalidValueError, OverflowError):
    """A shape that no tensor can have."""

    default_code = "negative_dimension"


class NotAnArray(InvalidValueError, TypeError):
    """What should be converted is no array, or none of the library that is spoken here."""

    default_code = "not_an_array"


@final
class Tensor:
    """An immutable array: shape, element type and bytes, equal to another by its contents.

    `numpy.asarray(tensor)` and `numpy.from_dlpack(tensor)` give a read-only view without a copy, as
    does `memoryview(tensor)` from Python 3.12 on; before, it is `tensor.buffer`. `torch.as_tensor`
    and `jax.numpy.asarray` take it as well.

    Args:
        buffer: anything that exports a buffer, or another tensor; it is copied.
        shape: dimensions; may be empty, may hold zeros.
        dtype: `bool`, `int8` to `int64`, `uint8` to `uint64`, or `float16` to `float64`.

    Raises:
        InvalidValueError: the element type is unknown, or the bytes do not fill the shape.
    """

    __slots__ = ("_array",)
    _array: Array

    def __init__(self, buffer: object, shape: Sequence[int], dtype: str) -> None:
        element = DTYPES.get(dtype)
        if element is None:
            names = ", ".join(DTYPES)
            raise InvalidValueError(f"{dtype!r} is not the type of a tensor; it can be {names}")
        dims = tuple(int(dim) for dim in shape)
        if any(dim < 0 for dim in dims):
            raise NegativeDimension(f"a tensor cannot have the shape {list(dims)}")
        content = _bytes_of(buffer)
        try:
            array = np.frombuffer(content, element).reshape(dims)
            # As everywhere on the wire, any byte but zero is true; numpy counts on a one.
            self._array = array.view(np.uint8) != 0 if dtype == "bool" else array
            self._array.flags.writeable = False
        except ValueError as error:
            raise InvalidValueError(
                f"{len(content)} bytes do not fill a tensor of shape {list(dims)} and type {dtype}"
            ) from error

    @classmethod
    def over(cls, array: Array) -> Tensor:
        """Return a tensor over the memory of an array that nobody will write to.

        The array must be in C order and little-endian; nothing is checked or copied.
        """
        array.flags.writeable = False
        tensor = object.__new__(cls)
        tensor._array = array
        return tensor

    @staticmethod
    def from_dlpack(source: Any) -> Tensor:  # Any: whatever has __dlpack__, or its capsule
        """Return a tensor with a copy of what another library's array, or its capsule, holds.

        Raises:
            NotAnArray: it cannot be read through DLPack at all.
            InvalidValueError: it is not on the CPU, needs gradients, or has another element type.
        """
        # Any: numpy's own protocol for it is narrower than what it takes
        exporter: Any = _Capsule(source) if type(source).__name__ == "PyCapsule" else source
        if not hasattr(exporter, "__dlpack__"):
            raise NotAnArray(f"{type(source).__name__} cannot be read through DLPack")
        try:
            array = np.from_dlpack(exporter)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise InvalidValueError(
                f"{type(source).__name__} cannot be read through DLPack: {error}"
            ) from error
        return Tensor(array.tobytes(), array.shape, array.dtype.name)

    @property
    def shape(self) -> list[int]:
        """The dimensions."""
        return list(self._array.shape)

    @property
    def dtype(self) -> str:
        """The name of the element type."""
        return self._array.dtype.name

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._array.size

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
        return self._array.nbytes

    @property
    def strides(self) -> list[int]:
        """Bytes from one element to the next, along each dimension."""
        return list(self._array.strides)

    @property
    def device(self) -> str:
        """Where the memory is: always the CPU."""
        return "cpu"

    @property
    def buffer(self) -> memoryview:
        """A read-only view of the elements, with shape and type."""
        return memoryview(cast("bytes", self._array))

    def is_contiguous(self) -> bool:
        """Return whether the elements follow one another in C order, which they always do."""
        return True

    def reshape(self, shape: Sequence[int]) -> Tensor:
        """Return the same elements under other dimensions; one of them may be -1.

        Raises:
            InvalidValueError: the dimensions hold another number of elements.
        """
        try:
            return Tensor.over(self._array.reshape(tuple(shape)))
        except ValueError as error:
            raise InvalidValueError(f"{self!r} cannot take the shape {list(shape)}") from error

    def copy(self) -> Tensor:
        """Return a tensor with memory of its own."""
        return Tensor(self._array.tobytes(), self._array.shape, self.dtype)

    def tobytes(self) -> bytes:
        """Return the elements in C order, little-endian."""
        return self._array.tobytes()

    def tolist(self) -> object:
        """Return the elements as nested lists of Python numbers."""
        return cast("object", self._array.tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if dtype is None or np.dtype(dtype) == self._array.dtype:
            return self._array.copy() if copy else self._array.view()
        if copy is False:
            raise InvalidValueError(f"{self!r} cannot become {dtype!r} without a copy")
        return self._array.astype(dtype)

    def __jax_array__(self) -> Any:  # Any: JAX has no types for what is needed of it
        # JAX, which alone calls this, stumbles over a dtype that is a word otherwise.
        return import_module("jax.numpy").asarray(self._array)

    def __buffer__(self, flags: int, /) -> memoryview:
        return self.buffer

    def __dlpack__(
        self,
        *,
        stream: Any = None,  # Any here and below: the protocol's own, library-specific handles
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if stream is not None or dl_device not in (None, (1, 0)):
            raise BufferError(f"{self!r} is on the CPU and has no streams")
        if max_version is None or max_version < (1, 0):
            # A legacy capsule cannot say that it is read-only, so it gets memory of its own.
            return self._array.copy().__dlpack__()
        array = self._array.copy() if copy else self._array
        return array.__dlpack__(max_version=max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tensor):
            return NotImplemented
        return self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash(self._facts())

    def __reduce__(self) -> tuple[object, ...]:
        return Tensor, (self.tobytes(), tuple(self._array.shape), self.dtype)

    def __repr__(self) -> str:
        return f'Tensor(dtype="{self.dtype}", shape={self.shape}, bytes={self.nbytes})'

    def _facts(self) -> tuple[str, tuple[int, ...], bytes]:
        return self.dtype, self._array.shape, self._array.tobytes()


class _Capsule:
    """Stands for the array that a DLPack capsule came from."""

    def __init__(self, capsule: object) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: object) -> object:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def _bytes_of(buffer: object) -> bytes:
    if isinstance(buffer, Tensor):
        return buffer.tobytes()
    try:
        return memoryview(cast("bytes", buffer)).tobytes()
    except TypeError as error:
        raise InvalidValueError(
            f"a tensor is made from a bytes-like object, not from {type(buffer).__name__}"
        ) from error


class Backend(Protocol):
    """What stands for an array in decoded values."""

    @property
    def name(self) -> str:
        """The backend's word in messages."""
        ...

    def leaf(self, array: Array) -> Any:  # Any: each framework has an array type of its own
        """Return what users get for an array over memory that is not theirs: it is copied."""
        ...

    def owned(self, array: Array) -> Any:  # Any: as above
        """Return what users get for an array whose memory is theirs alone, without a copy.

        The array is aligned, in C order and little-endian, and nobody else will write to it; it is
        writable unless it is over immutable bytes.
        """
        ...


@final
class _Native:
    name = "native"

    @staticmethod
    def leaf(array: Array) -> Tensor:
        # Bytes cannot change, so a tensor over them needs no memory of its own.
        return Tensor.over(array if isinstance(cast("object", array.base), bytes) else array.copy())

    @staticmethod
    def owned(array: Array) -> Tensor:
        return Tensor.over(array)


@final
class _Numpy:
    name = "numpy"

    @staticmethod
    def leaf(array: Array) -> Array:
        return array.copy()

    @staticmethod
    def owned(array: Array) -> Array:
        return array


NATIVE: Final[Backend] = _Native()
"""Arrays are `Tensor`s."""

NUMPY: Final[Backend] = _Numpy()
"""Arrays are `numpy.ndarray`s that belong to the caller."""
