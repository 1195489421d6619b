"""`rlmesh.jax.EnvFactory`: environments that take actions of jax."""

from typing import ClassVar

from rlmesh.authoring.factory import EnvFactory as AnyEnvFactory
from rlmesh.backends.frameworks import FrameworkName


class EnvFactory(AnyEnvFactory):
    """Makes environments whose actions arrive as jax arrays; see `rlmesh.EnvFactory`."""

    framework: ClassVar[FrameworkName] = "jax"
