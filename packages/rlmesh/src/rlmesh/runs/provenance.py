"""Which software a result was made with, and on what kind of machine."""

import os
import platform
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version

_ALWAYS = ("rlmesh", "rlcore", "numpy", "gymnasium")
_WHERE_USED = {"torch": "torch", "stable-baselines3": "stable_baselines3", "rleaas": "rleaas"}


def package_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that shape a run.

    Frameworks are named only when this process has loaded them.
    """
    used = (name for name, module in _WHERE_USED.items() if module in sys.modules)
    found = {name: _version(name) for name in (*_ALWAYS, *used)}
    installed = {name: number for name, number in found.items() if number is not None}
    return {"python": platform.python_version(), **installed}


def machine() -> dict[str, str | int]:
    """Return what kind of machine this is; not which one: a host's name is nobody's business."""
    return {
        "system": platform.system(),
        "release": platform.release(),
        "processor": platform.machine(),
        "cpus": _cpus(),
    }


def _cpus() -> int:
    # A container or `taskset` leaves a process fewer than the machine has.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
