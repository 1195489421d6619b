"""`rlmesh.torch.RemoteModel`: the served model whose actions are tensors of PyTorch."""

from __future__ import annotations

from typing import ClassVar

from rlmesh.backends.frameworks import FrameworkName
from rlmesh.client.remote_model import RemoteModel as NativeRemoteModel


class RemoteModel(NativeRemoteModel):
    """A served model whose actions are tensors of PyTorch; otherwise `rlmesh.RemoteModel`.

    Raises:
        MissingDependencyError: torch is not installed.
    """

    framework: ClassVar[FrameworkName] = "torch"
