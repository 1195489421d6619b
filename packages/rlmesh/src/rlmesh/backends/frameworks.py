"""The array libraries by name, imported when they are asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final, Literal, TypeAlias, cast

from rlcore import ConfigurationError, MissingDependencyError

from rlmesh.values import NATIVE, NUMPY, Backend

FrameworkName: TypeAlias = Literal["native", "numpy", "torch", "jax"]

_SPELLINGS: Final[Mapping[str, FrameworkName]] = {
    "numpy": "numpy",
    "np": "numpy",
    "torch": "torch",
    "jax": "jax",
}
# What the extras of this package ask for.
_OLDEST: Final = {"numpy": (1, 26), "torch": (2, 4), "jax": (0, 4, 30)}


def framework_named(name: object) -> FrameworkName:
    """Return which framework a user means: `numpy` (or `np`), `torch` or `jax`, in any case.

    Raises:
        ConfigurationError: it is none of these.
    """
    found = _SPELLINGS.get(name.strip().lower()) if isinstance(name, str) else None
    if found is None:
        raise ConfigurationError(
            f"framework is {name!r}", hint="It can be 'numpy' (or 'np'), 'torch' or 'jax'."
        )
    return found


def require(framework: FrameworkName) -> None:
    """Import the library behind a framework.

    Raises:
        MissingDependencyError: it is not installed, cannot be imported, or is too old.
    """
    if framework == "native":
        return
    try:
        library = import_module(framework)
    except ImportError as error:
        raise MissingDependencyError(
            f"values of {framework} need {framework}, which cannot be imported: {error}",
            hint=f"Install `rlmesh[{framework}]`.",
        ) from error
    found = str(getattr(library, "__version__", ""))
    oldest = _OLDEST[framework]
    numbers = tuple(int(number) for number in re.findall(r"\d+", found)[: len(oldest)])
    if numbers and numbers < oldest:
        wanted = ".".join(map(str, oldest))
        raise MissingDependencyError(
            f"values of {framework} need {framework} {wanted}, and {found} is installed",
            hint=f"Install `rlmesh[{framework}]`.",
        )


def backend_of(framework: FrameworkName, device: object = None) -> Backend:
    """Return the backend whose values are a framework's, on one of its devices.

    Args:
        framework: whose arrays.
        device: where they are put, such as `"cuda:0"` or the framework's own device object; by
            default the CPU for torch, and what jax takes by default.

    Raises:
        ConfigurationError: the framework has no such device, or no devices at all.
        MissingDependencyError: the framework is not installed.
    """
    require(framework)
    if framework in ("torch", "jax"):
        made: Callable[[object], Backend] = import_module(
            f"rlmesh.backends.{framework}_arrays"
        ).backend
        return made(device)
    if device is not None:
        raise ConfigurationError(
            f"device is {device!r}, and {framework} values have no device",
            hint="Leave it out, or use torch or jax.",
        )
    return NATIVE if framework == "native" else NUMPY


def opener(
    module: str, homes: Mapping[str, str], framework: FrameworkName
) -> Callable[[str], object]:
    """Return the `__getattr__` of a public module whose names are imported at their first use.

    Args:
        module: its name.
        homes: `module:attribute` for each public name.
        framework: what has to be installed; without it, every use of a name says so.
    """

    def get(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        require(framework)
        room, _, attribute = home.partition(":")
        return cast("object", getattr(import_module(room), attribute))

    return get
