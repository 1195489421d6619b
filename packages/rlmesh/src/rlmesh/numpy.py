"""NumPy values on both sides of a session. This list is what is public."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlmesh.client.numpy_env import RemoteEnv
    from rlmesh.models.numpy_model import Model

__all__ = ["Model", "RemoteEnv"]

_HOMES = {
    "Model": "rlmesh.models.numpy_model",
    "RemoteEnv": "rlmesh.client.numpy_env",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return __all__
