"""Whose arrays an environment is stepped with."""

from __future__ import annotations

from typing import Final

from rlcore import ConfigurationError

from rlmesh.backends.frameworks import backend_of, framework_named
from rlmesh.values import NUMPY, Backend

FRAMEWORK_VARIABLE: Final = "RLMESH_FRAMEWORK"
DEVICE_VARIABLE: Final = "RLMESH_DEVICE"


def action_backend(framework: object, device: object) -> Backend:
    """Return what the arrays of actions become before they reach the environment.

    Observations, rewards and flags are taken in every framework, whatever this is.

    Args:
        framework: `"numpy"` (or `"np"`), `"torch"` or `"jax"`, in any case; None means NumPy.
        device: where a framework's arrays are put; None leaves it to the framework.

    Raises:
        ConfigurationError: there is no such framework or device, or a device without a framework
            that has any.
        MissingDependencyError: the framework is not installed.
    """
    if framework is not None:
        return backend_of(framework_named(framework), device)
    if device is not None:
        raise ConfigurationError(
            f"device is {device!r}, and no framework was named",
            hint="Give framework='torch' or framework='jax' with it.",
        )
    return NUMPY
