"""Tensors of PyTorch on both sides of a session. This list is what is public."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmesh.backends.frameworks import opener, require

if TYPE_CHECKING:
    from rlmesh.authoring.torch_factory import EnvFactory
    from rlmesh.backends.torch_arrays import TorchValue, as_tensor, from_tensor
    from rlmesh.client.torch_env import RemoteEnv
    from rlmesh.client.torch_model import RemoteModel
    from rlmesh.client.torch_vector_env import RemoteVectorEnv
    from rlmesh.models.torch_model import Model
    from rlmesh.spaces.framework_spaces import torch_space as space_from_spec

__all__ = [
    "EnvFactory",
    "Model",
    "RemoteEnv",
    "RemoteModel",
    "RemoteVectorEnv",
    "TorchValue",
    "as_tensor",
    "ensure_available",
    "from_tensor",
    "space_from_spec",
]

_HOMES = {
    "EnvFactory": "rlmesh.authoring.torch_factory:EnvFactory",
    "Model": "rlmesh.models.torch_model:Model",
    "RemoteEnv": "rlmesh.client.torch_env:RemoteEnv",
    "RemoteModel": "rlmesh.client.torch_model:RemoteModel",
    "RemoteVectorEnv": "rlmesh.client.torch_vector_env:RemoteVectorEnv",
    "TorchValue": "rlmesh.backends.torch_arrays:TorchValue",
    "as_tensor": "rlmesh.backends.torch_arrays:as_tensor",
    "from_tensor": "rlmesh.backends.torch_arrays:from_tensor",
    "space_from_spec": "rlmesh.spaces.framework_spaces:torch_space",
}


def ensure_available() -> None:
    """Do nothing where torch can be imported.

    Raises:
        MissingDependencyError: it cannot.
    """
    require("torch")


if not TYPE_CHECKING:
    __getattr__ = opener(__name__, _HOMES, "torch")


def __dir__() -> list[str]:
    return __all__
