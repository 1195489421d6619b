from typing import TYPE_CHECKING

from rleaas.training.config import (
    AVAILABLE_ALGORITHMS,
    SUPPORTED_ALGORITHMS,
    ComputeQuota,
    Simulation,
    TrainingConfig,
    validate_algorithm,
    validate_simulation,
    validate_training_config,
)

if TYPE_CHECKING:
    from rleaas.resources.training import TrainingClient
    from rleaas.resources.training_handle import TrainingJobResource

__all__ = [
    "AVAILABLE_ALGORITHMS",
    "SUPPORTED_ALGORITHMS",
    "ComputeQuota",
    "Simulation",
    "TrainingClient",
    "TrainingConfig",
    "TrainingJobResource",
    "validate_algorithm",
    "validate_simulation",
    "validate_training_config",
]

_HOMES = {
    "TrainingClient": "rleaas.resources.training",
    "TrainingJobResource": "rleaas.resources.training_handle",
}


if not TYPE_CHECKING:  # a checker would take every name for one that is there

    def __getattr__(name: str) -> object:
        # What clients use is above this room, and is imported when somebody asks for it here.
        from importlib import import_module

        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)
