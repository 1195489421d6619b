"""Policies of PyTorch: modules, TorchScript, exported programs, and state dicts."""

# torch leaves what its functions take and return untyped.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import torch
from rlcore import ConfigurationError

from rlmesh.models.input_form import Shape
from rlmesh.models.model_files import FileKind, ModelFileError, digest_of, unreadable
from rlmesh.models.network_policy import NetworkPolicy
from rlmesh.models.outputs import ActionOption
from rlmesh.models.torch_model import Model as TorchModel

# Any, in this room: modules and what goes through them.

_NESTED: Final = ("state_dict", "model_state_dict", "model", "policy", "net")
_TORCH: Final[Any] = torch


def load_torch_file(
    path: Path,
    kind: FileKind,
    *,
    module: object = None,
    device: object = None,
    deterministic: bool = True,
    action: ActionOption = "auto",
    name: str | None = None,
) -> TorchModel[Any, Any]:
    """Return the policy in a file of torch.

    Raises:
        ModelFileError: it cannot be read, or a state dict does not fit the module.
    """
    inputs: Mapping[str, Shape] | None = None
    try:
        match kind:
            case FileKind.TORCHSCRIPT:
                with warnings.catch_warnings():
                    # torch would rather have other files; this one is what there is.
                    warnings.simplefilter("ignore", FutureWarning)
                    loaded = _TORCH.jit.load(str(path), map_location="cpu")
            case FileKind.EXPORTED:
                program = _TORCH.export.load(path)
                loaded, inputs = program.module(), _inputs_of(program)
            case _:
                loaded = _TORCH.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # damaged files raise nearly anything
        raise unreadable(path, kind.value, error) from error
    if kind is FileKind.STATE_DICT:
        loaded = _with_state(path, loaded, module)
    return load_module(
        loaded,
        device=device,
        deterministic=deterministic,
        action=action,
        name=name or path.stem,
        digest=digest_of(path),
        inputs=inputs,
    )


def load_module(
    module: Any,
    *,
    device: object = None,
    deterministic: bool = True,
    action: ActionOption = "auto",
    name: str | None = None,
    digest: str | None = None,
    inputs: Mapping[str, Shape] | None = None,
) -> TorchModel[Any, Any]:
    """Return a module as a model; it is put into evaluation mode, and onto the device.

    Raises:
        ConfigurationError: there is no such device.
    """
    if device is not None:
        try:
            module = module.to(device)
        except (RuntimeError, AssertionError) as error:
            raise ConfigurationError(
                f"torch cannot use the device {device!r}: {error}",
                hint="Give a device that this machine has, such as 'cpu'.",
            ) from error
    called = name or type(module).__name__
    network = TorchNetwork(module, inputs)
    policy = NetworkPolicy(network, name=called, action=action, deterministic=deterministic)
    model: TorchModel[Any, Any] = TorchModel(policy, name=called, digest=digest)
    model.device = network.device
    return model


class TorchNetwork:
    """A module, called without gradients and with floats of its own type."""

    def __init__(self, module: Any, inputs: Mapping[str, Shape] | None) -> None:
        self._module = module
        self.inputs = inputs
        self._names = _parameter_names(module)
        self.is_named = len(self._names) > 1
        first = next(iter(module.parameters()), None)
        self.device = None if first is None else first.device
        self._dtype = None if first is None or not first.is_floating_point() else first.dtype
        # Exported programs are in the mode that they were exported in.
        with suppress(NotImplementedError):
            module.eval()

    def outputs(self, observations: Any) -> Any:
        """Return what the module makes of observations.

        A dictionary is given by the names of the module's parameters where it has them, else as it
        is. Numbers of images and floats get the type of the module's own; whole numbers, such as
        those of discrete spaces, keep theirs.
        """
        given = self._cast(observations)
        with torch.inference_mode():
            if isinstance(given, dict) and self._names and set(self._names) <= set(given):
                return self._module(**{name: given[name] for name in self._names})
            return self._module(given)

    def _cast(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: self._cast(item) for key, item in value.items()}
        if isinstance(value, tuple | list):
            return type(value)(self._cast(item) for item in value)
        if isinstance(value, np.ndarray):
            value = torch.as_tensor(value, device=self.device)
        if not isinstance(value, torch.Tensor):
            return value
        if self._dtype is None or value.dtype in (torch.int64, torch.int32, self._dtype):
            return value
        return value.to(self._dtype)


def _parameter_names(module: Any) -> list[str]:
    """Return what a module's parameters are called, where it says so."""
    try:
        schema = module.forward.schema  # of TorchScript
        return [str(argument.name) for argument in schema.arguments if argument.name != "self"]
    except (AttributeError, RuntimeError):
        pass
    try:
        parameters = inspect.signature(module.forward).parameters.values()
    except (TypeError, ValueError):
        return []
    if any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters):
        return []
    return [
        each.name
        for each in parameters
        if each.default is inspect.Parameter.empty
        and each.kind is not inspect.Parameter.VAR_KEYWORD
    ]


def _inputs_of(program: Any) -> Mapping[str, Shape] | None:
    """Return the shapes of what an exported program takes; symbols may vary."""
    wanted = set(program.graph_signature.user_inputs)
    shapes: dict[str, Shape] = {}
    for node in program.graph.nodes:
        value = node.meta.get("val") if node.op == "placeholder" and node.name in wanted else None
        if isinstance(value, torch.Tensor):
            shapes[node.name] = tuple(
                dim if isinstance(dim, int) else None for dim in cast("Any", value.shape)
            )
    return shapes or None


def _with_state(path: Path, state: object, module: object) -> Any:
    if module is None:
        raise ModelFileError(
            f"{path.name!r} holds weights without the module that they are of",
            hint="Give module=MODULE, or a function or class that makes one.",
        )
    made = _made(module)
    weights = _weights(state)
    if weights is None:
        raise ModelFileError(
            f"{path.name!r} holds no state dict, but {type(state).__name__}",
            hint="Save module.state_dict().",
        )
    try:
        made.load_state_dict(weights)
    except (RuntimeError, ValueError, TypeError) as error:
        raise ModelFileError(
            f"the weights in {path.name!r} do not fit {type(made).__name__}: {error}",
            hint="Make the module as it was for training.",
        ) from error
    return made


def _made(module: object) -> Any:
    """Return the module that weights are for.

    Raises:
        ConfigurationError: there is none; the file has nothing to do with that.
    """
    made: Any = module
    if not isinstance(module, torch.nn.Module):
        if not callable(module):
            raise ConfigurationError(
                f"module is {module!r}",
                hint="Give a torch.nn.Module, or a function or class that makes one.",
            )
        try:
            made = module()
        except Exception as error:  # it is the caller's own
            name = getattr(module, "__qualname__", repr(module))
            raise ConfigurationError(
                f"module={name} raised {type(error).__name__}: {error}",
                hint="Give a module, or what makes one without arguments.",
            ) from error
    if not isinstance(made, torch.nn.Module):
        raise ConfigurationError(f"module={module!r} made {made!r}, which is no torch.nn.Module")
    return made


def _weights(state: object) -> Mapping[str, Any] | None:
    if not isinstance(state, Mapping):
        return None
    entries = cast("Mapping[str, Any]", state)
    if entries and all(isinstance(value, torch.Tensor) for value in entries.values()):
        return entries
    for key in _NESTED:
        nested = _weights(entries.get(key))
        if nested is not None:
            return nested
    return None
