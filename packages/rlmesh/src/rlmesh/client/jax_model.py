"""`rlmesh.jax.RemoteModel`: the served model whose actions are arrays of JAX."""

from __future__ import annotations

from typing import ClassVar

from rlmesh.backends.frameworks import FrameworkName
from rlmesh.client.remote_model import RemoteModel as NativeRemoteModel


class RemoteModel(NativeRemoteModel):
    """A served model whose actions are arrays of JAX; otherwise `rlmesh.RemoteModel`.

    Raises:
        MissingDependencyError: jax is not installed.
    """

    framework: ClassVar[FrameworkName] = "jax"
