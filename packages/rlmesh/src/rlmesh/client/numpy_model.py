"""`rlmesh.numpy.RemoteModel`: the served model whose actions are NumPy values."""

from __future__ import annotations

from typing import ClassVar

from rlmesh.backends.frameworks import FrameworkName
from rlmesh.client.remote_model import RemoteModel as NativeRemoteModel


class RemoteModel(NativeRemoteModel):
    """A served model whose actions are NumPy values; otherwise `rlmesh.RemoteModel`."""

    framework: ClassVar[FrameworkName] = "numpy"
