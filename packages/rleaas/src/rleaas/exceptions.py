"""The published errors, under the published path of the module; `rleaas` has all."""

from rlcore import (
    AuthenticationError,
    EnvironmentNotFound,
    QuotaExceededError,
    RateLimitError,
    RLEaaSAPIError,
    RLEaaSError,
    TrainingJobFailed,
    TrainingJobNotFound,
    VerifierNotFound,
)

__all__ = [
    "AuthenticationError",
    "EnvironmentNotFound",
    "QuotaExceededError",
    "RLEaaSAPIError",
    "RLEaaSError",
    "RateLimitError",
    "TrainingJobFailed",
    "TrainingJobNotFound",
    "VerifierNotFound",
]
