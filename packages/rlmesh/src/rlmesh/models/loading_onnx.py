"""Policies in ONNX files, run by onnxruntime."""

# onnxruntime has no types.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime  # type: ignore[import-untyped]  # it has no types
from rlcore import ConfigurationError, InvalidValueError

from rlmesh.models.input_form import Shape
from rlmesh.models.model_files import digest_of, unreadable
from rlmesh.models.network_policy import NetworkPolicy
from rlmesh.models.numpy_model import Model as NumpyModel
from rlmesh.models.outputs import ActionOption
from rlmesh.values import DTYPES

# Any, in this room: what goes through a session.

_DTYPES: Final = {
    "tensor(bool)": "bool",
    "tensor(float16)": "float16",
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    **{f"tensor({name})": name for name in DTYPES if "int" in name},
}
_PROVIDERS: Final = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
_QUIET: Final = 3  # errors only: what the file's author could have done better is not for users


def load_onnx(
    path: Path,
    *,
    device: object = None,
    deterministic: bool = True,
    action: ActionOption = "auto",
    name: str | None = None,
) -> NumpyModel[Any, Any]:
    """Return the policy in an ONNX file.

    Raises:
        ModelFileError: it cannot be read.
        ConfigurationError: there is no such device here.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _QUIET
    provider = _provider(device)
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=[provider])
    except Exception as error:  # its own exceptions share no base
        raise unreadable(path, "an ONNX file", error) from error
    called = name or path.stem
    network = OnnxNetwork(session, called)
    policy = NetworkPolicy(network, name=called, action=action, deterministic=deterministic)
    return NumpyModel(policy, name=called, digest=digest_of(path, *_beside(path)))


class OnnxNetwork:
    """A session, whose inputs are matched by name and get the types that they declare."""

    is_named = True

    def __init__(self, session: Any, name: str) -> None:
        self._session = session
        self._name = name
        inputs = session.get_inputs()
        self.inputs: Mapping[str, Shape] = {
            each.name: tuple(dim if isinstance(dim, int) else None for dim in each.shape)
            for each in inputs
        }
        self._dtypes = {each.name: _dtype(each, name) for each in inputs}
        self._outputs = [each.name for each in session.get_outputs()]

    def outputs(self, observations: Any) -> Any:
        """Return the outputs: one as it is, several by their names."""
        given = {name: self._input(name, observations) for name in self._dtypes}
        found = self._session.run(None, given)
        return found[0] if len(found) == 1 else dict(zip(self._outputs, found, strict=True))

    def _input(self, name: str, observations: Any) -> Any:
        value = observations
        if isinstance(observations, Mapping):
            entries: Mapping[str, Any] = observations
            if name in entries:
                value = entries[name]
            elif len(self._dtypes) == len(entries) == 1:
                value = next(iter(entries.values()))
            else:
                raise InvalidValueError(
                    f"{self._name!r} takes {name!r}, and the observation has {list(entries)}"
                )
        return np.ascontiguousarray(value, self._dtypes[name])


def _dtype(declared: Any, model: str) -> np.dtype[Any]:
    name = _DTYPES.get(declared.type)
    if name is None:
        raise ConfigurationError(
            f"the input {declared.name!r} of {model!r} is {declared.type}",
            hint="Export it with inputs that are tensors of numbers.",
        )
    return np.dtype(name)


def _provider(device: object) -> str:
    wanted = str(device or "cpu").partition(":")[0].lower()
    provider = _PROVIDERS.get(wanted)
    available = onnxruntime.get_available_providers()
    if provider is None or provider not in available:
        raise ConfigurationError(
            f"onnxruntime cannot use the device {device!r} (it has {', '.join(available)})",
            hint="Leave it out, or install the onnxruntime that is built for it.",
        )
    return provider


def _beside(path: Path) -> list[Path]:
    """Return the files that hold the weights of a large model."""
    names = (f"{path.name}.data", f"{path.name}_data", f"{path.stem}.data")
    return [found for name in names if (found := path.with_name(name)).is_file()]
