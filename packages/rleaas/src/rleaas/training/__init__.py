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

__all__ = [
    "AVAILABLE_ALGORITHMS",
    "SUPPORTED_ALGORITHMS",
    "ComputeQuota",
    "Simulation",
    "TrainingConfig",
    "validate_algorithm",
    "validate_simulation",
    "validate_training_config",
]
