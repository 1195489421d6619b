from typing import TYPE_CHECKING

from rleaas.training.algorithms import (
    AVAILABLE_ALGORITHMS,
    SUPPORTED_ALGORITHMS,
    validate_algorithm,
)
from rleaas.training.config import TrainingConfig, validate_training_config
from rleaas.training.quota import ComputeQuota
from rleaas.training.simulation import Simulation, validate_simulation

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
    # The published package has them here.
    "_cmd_start": "rleaas.cli.training.published:cmd_start",
    "_load_json": "rleaas.cli.training.published:load_json",
    "_resolve_training_entries": "rleaas.cli.training.published:resolve_training_entries",
    "_start_one": "rleaas.cli.training.published:start_entry",
}


if not TYPE_CHECKING:  # a checker would take every name for one that is there

    def __getattr__(name: str) -> object:
        # What clients use is above this room, and is imported when somebody asks for it here.
        from importlib import import_module

        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home, _, own = _HOMES[name].partition(":")
        return getattr(import_module(home), own or name)
