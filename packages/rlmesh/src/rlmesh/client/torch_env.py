"""A served environment whose values are tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Unpack

from rlmesh.backends.frameworks import FrameworkName
from rlmesh.client.array_env import ArrayEnv
from rlmesh.client.options import ConnectOptions

if TYPE_CHECKING:
    import torch


class RemoteEnv(ArrayEnv):
    """A client of one served environment, with tensors.

    It is a `gymnasium.Env` where gymnasium is installed, so that wrappers take it. Its spaces then
    are gymnasium's, whose samples are NumPy arrays; `rlmesh.torch.space_from_spec` makes, of
    `action_space_spec`, one whose samples are tensors, as the spaces are without gymnasium.
    Actions may be tensors, NumPy arrays or plain Python, also mixed within one action; wrappers
    that calculate with them, such as `ClipAction`, are best given NumPy arrays.

    On the CPU, tensors lie over the memory in which the values arrived, which is theirs alone.

    Args:
        address: `tcp://HOST:PORT`, `HOST:PORT`, `unix:///PATH`, a name such as
            `rleaas://CartPole@3`, an `rlcore.Endpoint`, or anything with an `address`.
        device: where observations and frames are put, such as `"cuda:0"`; by default the CPU.
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
        device: torch.device | str | None = None,
        **options: Unpack[ConnectOptions],
    ) -> None:
        super().__init__(address, options, device=device)
