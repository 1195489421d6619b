"""`rlmesh.jax.Model`: the model whose observations are JAX arrays."""

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
    """A policy over JAX arrays: arrays arrive as `jax.Array`; otherwise `rlmesh.Model`.

    Attributes:
        device: where observations are put before `predict`, such as `"cuda:0"`; set it in the class
            or in `load`. By default the framework's own choice.

    Raises:
        MissingDependencyError: jax is not installed.
    """

    backend: ClassVar[Backend] = "jax"
