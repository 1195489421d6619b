"""NumPy values on both sides of a session. This list is what is public."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmesh.backends.frameworks import opener, require

if TYPE_CHECKING:
    from rlmesh.authoring.numpy_factory import EnvFactory
    from rlmesh.backends.numpy_arrays import NumpyValue, asarray, from_array
    from rlmesh.client.numpy_env import RemoteEnv
    from rlmesh.client.numpy_envs import RemoteEnvs
    from rlmesh.client.numpy_model import RemoteModel
    from rlmesh.client.numpy_vector_env import RemoteVectorEnv
    from rlmesh.models.numpy_model import Model
    from rlmesh.spaces.framework_spaces import numpy_space as space_from_spec

__all__ = [
    "EnvFactory",
    "Model",
    "NumpyValue",
    "RemoteEnv",
    "RemoteEnvs",
    "RemoteModel",
    "RemoteVectorEnv",
    "asarray",
    "ensure_available",
    "from_array",
    "space_from_spec",
]

_HOMES = {
    "EnvFactory": "rlmesh.authoring.numpy_factory:EnvFactory",
    "Model": "rlmesh.models.numpy_model:Model",
    "RemoteEnv": "rlmesh.client.numpy_env:RemoteEnv",
    "RemoteEnvs": "rlmesh.client.numpy_envs:RemoteEnvs",
    "RemoteModel": "rlmesh.client.numpy_model:RemoteModel",
    "RemoteVectorEnv": "rlmesh.client.numpy_vector_env:RemoteVectorEnv",
    "NumpyValue": "rlmesh.backends.numpy_arrays:NumpyValue",
    "asarray": "rlmesh.backends.numpy_arrays:asarray",
    "from_array": "rlmesh.backends.numpy_arrays:from_array",
    "space_from_spec": "rlmesh.spaces.framework_spaces:numpy_space",
}


def ensure_available() -> None:
    """Do nothing where numpy can be imported.

    Raises:
        MissingDependencyError: it cannot.
    """
    require("numpy")


if not TYPE_CHECKING:
    __getattr__ = opener(__name__, _HOMES, "numpy")


def __dir__() -> list[str]:
    return __all__
