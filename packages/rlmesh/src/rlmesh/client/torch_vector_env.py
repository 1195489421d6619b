"""Served lanes whose values are tensors of PyTorch."""

from __future__ import annotations

from typing import ClassVar, Unpack

from rlmesh.backends.frameworks import FrameworkName
from rlmesh.client.array_vector_env import ArrayVectorEnv
from rlmesh.client.options import ConnectOptions


class RemoteVectorEnv(ArrayVectorEnv):
    """A client of all lanes of a served environment, with tensors of PyTorch.

    It is a `gymnasium.vector.VectorEnv` where gymnasium is installed, so that vector wrappers take
    it. Its spaces then are gymnasium's, whose samples are NumPy arrays; actions may be these or
    tensors. `rlmesh.torch.space_from_spec` makes, of `action_space_spec`, the space of one lane
    whose samples are tensors, as the spaces are without gymnasium.

    Args:
        address: `tcp://HOST:PORT`, `HOST:PORT`, `unix:///PATH`, a name such as
            `rleaas://CartPole@3`, an `rlcore.Endpoint`, or anything with an `address`. A server of
            a single environment is driven as one lane.
        device: where observations and frames are put; by default the CPU.
        **options: how to connect; see `rlmesh.client.options.ConnectOptions`.

    Raises:
        MissingDependencyError: torch is not installed.
        ConfigurationError: there is no such device here.
        AddressError: the address cannot be understood.
        ServerUnreachable: nothing answers there.
        AccessDenied: the server refused the token.
        IdentityError: what is served is not the expected environment.
        IncompatibleError: the server speaks another protocol.
        CallTimeout: the server does not answer.
    """

    framework: ClassVar[FrameworkName] = "torch"

    def __init__(
        self,
        address: object = None,
        *,
        device: object = None,
        **options: Unpack[ConnectOptions],
    ) -> None:
        super().__init__(address, options, device=device)
