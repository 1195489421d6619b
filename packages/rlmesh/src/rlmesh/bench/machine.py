"""Where figures come from: they mean nothing without it."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from rlmesh.runs.provenance import package_versions

CPU_INFO = Path("/proc/cpuinfo")


def machine() -> dict[str, object]:
    """Return what shapes figures: processor, how many may be used, kernel, load, versions."""
    return {
        "processor": _processor(),
        "cpus": _usable_cpus(),
        "system": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "load": _load(),
        "versions": {**package_versions(), "grpcio": _grpcio()},
    }


def _usable_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor() -> str | None:
    if CPU_INFO.exists():
        for line in CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or None


def _load() -> float | None:
    """How many processes wanted to run, on average over the last minute."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def _grpcio() -> str:
    from importlib.metadata import version

    return version("grpcio")
