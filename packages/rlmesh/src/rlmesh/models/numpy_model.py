"""`rlmesh.numpy.Model`: the model whose observations are numpy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from rlmesh.models.conversion import Backend
from rlmesh.models.model import Model as NativeModel

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    ObservationT = TypeVar("ObservationT", default=Any)
    ActionT = TypeVar("ActionT", default=Any)
else:
    # Defaults of type variables exist for type checkers only before Python 3.13.
    from typing import TypeVar

    ObservationT = TypeVar("ObservationT")
    ActionT = TypeVar("ActionT")


class Model(NativeModel[ObservationT, ActionT]):
    """A policy over numpy values: arrays arrive as `numpy.ndarray`; otherwise `rlmesh.Model`."""

    backend: ClassVar[Backend] = "numpy"
