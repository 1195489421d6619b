"""A served environment whose values are JAX arrays."""

from __future__ import annotations

from typing import ClassVar, Unpack

from rlmesh.backends.frameworks import FrameworkName
from rlmesh.client.array_env import ArrayEnv
from rlmesh.client.options import ConnectOptions


class RemoteEnv(ArrayEnv):
    """A client of one served environment, with JAX arrays.

    It is a `gymnasium.Env` where gymnasium is installed, so that wrappers take it. Its spaces then
    are gymnasium's, whose samples are NumPy arrays; `rlmesh.jax.space_from_spec` makes, of
    `action_space_spec`, one whose samples are JAX arrays, as the spaces are without gymnasium.
    Actions may be JAX arrays, NumPy arrays or plain Python, also mixed within one action; wrappers
    that calculate with them, such as `ClipAction`, are best given NumPy arrays.

    Without JAX's x64 mode, 64-bit values become 32-bit ones: the client says so once.

    Args:
        address: `tcp://HOST:PORT`, `HOST:PORT`, `unix:///PATH`, a name such as
            `rleaas://CartPole@3`, an `rlcore.Endpoint`, or anything with an `address`.
        device: where observations and frames are put, such as `"gpu:0"` or a `jax.Device`; by
            default where JAX puts them.
        **options: how to connect; see `rlmesh.client.options.ConnectOptions`.

    Raises:
        MissingDependencyError: jax is not installed.
        ConfigurationError: there is no such device here.
        AddressError: the address cannot be understood.
        ServerUnreachable: nothing answers there.
        AccessDenied: the server refused the token.
        IdentityError: what is served is not the expected environment.
        IncompatibleError: the server speaks another protocol.
        CallTimeout: the server does not answer.
    """

    framework: ClassVar[FrameworkName] = "jax"

    def __init__(
        self,
        address: object = None,
        *,
        device: object = None,
        **options: Unpack[ConnectOptions],
    ) -> None:
        super().__init__(address, options, device=device)
