"""A served environment as a Gymnasium environment with NumPy values."""

from __future__ import annotations

from typing import ClassVar, Unpack

from rlmesh.backends.frameworks import FrameworkName
from rlmesh.client.array_env import ArrayEnv
from rlmesh.client.options import ConnectOptions


class RemoteEnv(ArrayEnv):
    """A client of one served environment, with NumPy values.

    With gymnasium installed it is a `gymnasium.Env`: wrappers, `check_env` and trainers take it for
    a local one. Without gymnasium it has the same methods, and the spaces are `rlmesh.spaces`.
    Infos are the environment's own, as a local one gives them: what `rlmesh.RemoteEnv` adds to them
    (`episode_ids`) is not there; the current episode's id is `episode_id`.

    Args:
        address: `tcp://HOST:PORT`, `HOST:PORT`, `unix:///PATH`, a name such as
            `rleaas://CartPole@3`, an `rlcore.Endpoint`, or anything with an `address`.
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
