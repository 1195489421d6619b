"""Served lanes whose values are NumPy arrays."""

from __future__ import annotations

from typing import ClassVar, Unpack

from rlmesh.backends.frameworks import FrameworkName
from rlmesh.client.array_vector_env import ArrayVectorEnv
from rlmesh.client.options import ConnectOptions


class RemoteVectorEnv(ArrayVectorEnv):
    """A client of all lanes of a served environment, with NumPy arrays.

    With gymnasium installed it is a `gymnasium.vector.VectorEnv`: vector wrappers and trainers take
    it for a local one. Without gymnasium it has the same methods, and the spaces are
    `rlmesh.spaces`. Infos are as gymnasium has them: what `rlmesh.RemoteVectorEnv` adds to them
    (`episode_ids`, `completed_episodes`) is not there; `episode_ids` has the current ones.

    Args:
        address: `tcp://HOST:PORT`, `HOST:PORT`, `unix:///PATH`, a name such as
            `rleaas://CartPole@3`, an `rlcore.Endpoint`, or anything with an `address`. A server of
            a single environment is driven as one lane.
        **options: how to connect; see `rlmesh.client.options.ConnectOptions`.

    Raises:
        AddressError: the address cannot be understood.
        ServerUnreachable: nothing answers there.
        AccessDenied: the server refused the token.
        IdentityError: what is served is not the expected environment.
        IncompatibleError: the server speaks another protocol.
        CallTimeout: the server does not answer.
    """

    framework: ClassVar[FrameworkName] = "numpy"

    def __init__(self, address: object = None, **options: Unpack[ConnectOptions]) -> None:
        super().__init__(address, options)
