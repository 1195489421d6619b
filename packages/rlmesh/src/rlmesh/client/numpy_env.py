"""A served environment as a Gymnasium environment with NumPy values."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Unpack, cast

from rlmesh.backends.frameworks import FrameworkName
from rlmesh.client.array_env import ArrayEnv
from rlmesh.client.options import ConnectOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class RemoteEnv(ArrayEnv):
    """A client of one served environment, with NumPy values.

    With gymnasium installed it is a `gymnasium.Env`: wrappers, `check_env` and trainers take it for
    a local one. Without gymnasium it has the same methods, and the spaces are `rlmesh.spaces`.

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

    def render(self, *, env_index: int = 0) -> NDArray[np.uint8] | None:
        """Return the current frame, (H, W, 3), (H, W, 4) or (H, W), or None when there is none.

        Raises:
            EnvironmentException: the environment raised.
        """
        return cast("NDArray[np.uint8] | None", super().render(env_index=env_index))
