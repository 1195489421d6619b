"""Served lanes whose values are JAX arrays."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from rlmesh.backends.frameworks import FrameworkName
from rlmesh.client.array_vector_env import ArrayVectorEnv
from rlmesh.client.options import ConnectOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class RemoteVectorEnv(ArrayVectorEnv):
    """A client of all lanes of a served environment, with JAX arrays.

    It is a `gymnasium.vector.VectorEnv` where gymnasium is installed, so that vector wrappers take
    it. Its spaces then are gymnasium's, whose samples are NumPy arrays; actions may be these or JAX
    arrays. `rlmesh.jax.space_from_spec` makes, of `action_space_spec`, the space of one lane whose
    samples are JAX arrays, as the spaces are without gymnasium.

    Without JAX's x64 mode, rewards are float32.

    Args:
        address: `tcp://HOST:PORT`, `HOST:PORT`, `unix:///PATH`, a name such as
            `rleaas://CartPole@3`, an `rlcore.Endpoint`, or anything with an `address`. A server of
            a single environment is driven as one lane.
        device: where observations and frames are put; by default where JAX puts them.
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

    def _own_rewards(self, rewards: NDArray[np.float64]) -> Any:  # Any: a JAX array
        jax: Any = import_module("jax")  # Any: it has no types for what is needed of it
        # Rewards have no declared type that could be lost: they are as wide as JAX lets them be.
        dtype: np.dtype[Any] = jax.dtypes.canonicalize_dtype(rewards.dtype)
        return self._backend.owned(rewards.astype(dtype))
