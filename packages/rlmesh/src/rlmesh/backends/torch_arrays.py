"""PyTorch: decoded arrays as tensors, and tensors as what travels."""

from __future__ import annotations

from typing import Any, Final, TypeAlias, cast, final

import numpy as np
import torch
from rlcore import ConfigurationError

from rlmesh.backends.frameworks import backend_of
from rlmesh.backends.host import as_leaf, as_numpy, host
from rlmesh.values import Array, Backend, NotAnArray, Tensor

TorchValue: TypeAlias = (
    torch.Tensor
    | bool
    | int
    | float
    | str
    | bytes
    | list["TorchValue"]
    | tuple["TorchValue", ...]
    | dict[str, "TorchValue"]
    | None
)
"""An observation or an action whose arrays are tensors."""

_TORCH: Final[Any] = torch  # Any: torch leaves what its functions take untyped


def _from_numpy(array: Array) -> torch.Tensor:
    return cast("torch.Tensor", _TORCH.from_numpy(array))


@final
class TorchBackend:
    """Makes a tensor of each array: on the CPU over the array's own memory, or on a device."""

    name = "torch"

    def __init__(self, device: torch.device | None) -> None:
        self.device = device

    def leaf(self, array: Array) -> torch.Tensor:
        """Return a tensor with memory of its own."""
        return self._placed(_from_numpy(array.copy()))

    def owned(self, array: Array) -> torch.Tensor:
        """Return a tensor over the array's memory, or with a copy where that is read-only."""
        return self._placed(_from_numpy(array if array.flags.writeable else array.copy()))

    def _placed(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor if self.device is None else tensor.to(self.device)

    def __reduce__(self) -> tuple[object, ...]:
        return backend_of, ("torch", None if self.device is None else str(self.device))


def backend(device: object = None) -> Backend:
    """Return the backend of a device, which is tried out.

    Raises:
        ConfigurationError: there is no such device here.
    """
    if device is None:
        return TorchBackend(None)
    try:
        place = torch.device(cast("str", device))
        torch.empty(0, device=place)
    except (RuntimeError, TypeError, AssertionError) as error:
        raise ConfigurationError(
            f"torch cannot use the device {device!r}: {error}",
            hint="Give a device that this machine has, such as 'cpu'.",
        ) from error
    return TorchBackend(place)


def as_tensor(value: object, *, copy: bool = False) -> torch.Tensor:
    """Return a `rlmesh.Tensor` or a number as a tensor on the CPU.

    Without `copy` the tensor shares the memory of a `rlmesh.Tensor` where that may be written to:
    what is written to one shows in the other. Memory that must not change, such as that of `bytes`,
    is copied all the same.

    Raises:
        NotAnArray: the value is no Tensor and no number.
    """
    if isinstance(value, torch.Tensor):
        return value.clone() if copy else value
    if isinstance(value, bool | int | float):
        return torch.tensor(value)  # of the width that torch gives to Python's numbers
    shared = None if copy or not isinstance(value, Tensor) else _shared(value)
    return _from_numpy(as_numpy(value) if shared is None else shared)


def from_tensor(tensor: object) -> object:
    """Return a tensor as a `rlmesh.Tensor` with a copy of it, or as a Python number.

    It is detached and brought to the CPU. One without dimensions becomes a number; `bfloat16` and
    the smaller floats become float32, which holds each of their numbers.

    Raises:
        NotAnArray: it is no tensor.
        InvalidValueError: its elements are of a type that cannot travel.
    """
    if not isinstance(tensor, torch.Tensor):
        raise NotAnArray(f"{type(tensor).__name__} is not a torch.Tensor")
    return as_leaf(cast("Array", host(tensor)))


class _Window:
    """Tells NumPy of memory that it may write to, and keeps alive what the memory belongs to."""

    def __init__(self, array: Array) -> None:
        self.array = array
        at, _ = array.__array_interface__["data"]
        self.__array_interface__ = {**array.__array_interface__, "data": (at, False)}


def _shared(tensor: Tensor) -> Array | None:
    array = tensor.__array__()
    root: object = array
    while isinstance(root, np.ndarray):
        root = cast("object", root.base)
    # Bytes are shared by whoever has an equal value; writing to them would change all of these.
    free = root is None or isinstance(root, bytearray)
    if isinstance(root, memoryview):
        free = not root.readonly
    return np.asarray(_Window(array)) if free else None
