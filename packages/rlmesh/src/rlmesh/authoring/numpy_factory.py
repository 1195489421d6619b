"""`rlmesh.numpy.EnvFactory`: environments that take actions of numpy."""

from typing import ClassVar

from rlmesh.authoring.factory import EnvFactory as AnyEnvFactory
from rlmesh.backends.frameworks import FrameworkName


class EnvFactory(AnyEnvFactory):
    """Makes environments whose actions arrive as numpy arrays; see `rlmesh.EnvFactory`."""

    framework: ClassVar[FrameworkName] = "numpy"
