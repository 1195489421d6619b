"""`rlmesh.torch.EnvFactory`: environments that take actions of torch."""

from typing import ClassVar

from rlmesh.authoring.factory import EnvFactory as AnyEnvFactory
from rlmesh.backends.frameworks import FrameworkName


class EnvFactory(AnyEnvFactory):
    """Makes environments whose actions arrive as torch tensors; see `rlmesh.EnvFactory`."""

    framework: ClassVar[FrameworkName] = "torch"
