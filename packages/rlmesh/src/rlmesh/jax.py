"""Arrays of JAX on both sides of a session. This list is what is public."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmesh.backends.frameworks import opener, require

if TYPE_CHECKING:
    from rlmesh.authoring.jax_factory import EnvFactory
    from rlmesh.backends.jax_arrays import JaxValue, asarray, from_array
    from rlmesh.client.jax_env import RemoteEnv
    from rlmesh.client.jax_model import RemoteModel
    from rlmesh.client.jax_vector_env import RemoteVectorEnv
    from rlmesh.models.jax_model import Model
    from rlmesh.spaces.framework_spaces import jax_space as space_from_spec

__all__ = [
    "EnvFactory",
    "JaxValue",
    "Model",
    "RemoteEnv",
    "RemoteModel",
    "RemoteVectorEnv",
    "asarray",
    "ensure_available",
    "from_array",
    "space_from_spec",
]

_HOMES = {
    "EnvFactory": "rlmesh.authoring.jax_factory:EnvFactory",
    "Model": "rlmesh.models.jax_model:Model",
    "RemoteEnv": "rlmesh.client.jax_env:RemoteEnv",
    "RemoteModel": "rlmesh.client.jax_model:RemoteModel",
    "RemoteVectorEnv": "rlmesh.client.jax_vector_env:RemoteVectorEnv",
    "JaxValue": "rlmesh.backends.jax_arrays:JaxValue",
    "asarray": "rlmesh.backends.jax_arrays:asarray",
    "from_array": "rlmesh.backends.jax_arrays:from_array",
    "space_from_spec": "rlmesh.spaces.framework_spaces:jax_space",
}


def ensure_available() -> None:
    """Do nothing where jax can be imported.

    Raises:
        MissingDependencyError: it cannot.
    """
    require("jax")


if not TYPE_CHECKING:
    __getattr__ = opener(__name__, _HOMES, "jax")


def __dir__() -> list[str]:
    return __all__
