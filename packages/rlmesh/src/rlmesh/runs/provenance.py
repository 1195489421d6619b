"""Where a result comes from: which software, what kind of machine, which seeds."""

import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from rlcore import EnvironmentIdentity

Plain = str | int | float | bool | None
"""What a setting of a run can be, so that every file can hold it."""

_ALWAYS = ("rlmesh", "rlcore", "numpy", "gymnasium")
_WHERE_USED = {
    "torch": "torch",
    "jax": "jax",
    "onnxruntime": "onnxruntime",
    "stable-baselines3": "stable_baselines3",
    "rleaas": "rleaas",
}


@dataclass(frozen=True, slots=True)
class Provenance:
    """What is needed to make a result again.

    `settings` are the run's arguments that shape its episodes; `machine` says of what kind it
    was, not which one.
    """

    environment: EnvironmentIdentity | None
    model: str
    model_digest: str | None
    seeds: tuple[int | None, ...]
    settings: Mapping[str, Plain] = field(default_factory=dict[str, Plain])
    package_versions: Mapping[str, str] = field(default_factory=dict[str, str])
    machine: Mapping[str, str | int] = field(default_factory=dict[str, str | int])
    started_at: datetime | None = None
    finished_at: datetime | None = None

    def to_dict(self) -> dict[str, object]:
        """Return the provenance as plain JSON values."""
        return {
            "environment": None if self.environment is None else self.environment.to_dict(),
            "model": self.model,
            "model_digest": self.model_digest,
            "seeds": list(self.seeds),
            "settings": dict(self.settings),
            "package_versions": dict(self.package_versions),
            "machine": dict(self.machine),
            "started_at": None if self.started_at is None else self.started_at.isoformat(),
            "finished_at": None if self.finished_at is None else self.finished_at.isoformat(),
        }

    @property
    def model_text(self) -> str:
        """The model's name and the beginning of its digest."""
        short = "" if self.model_digest is None else f" ({self.model_digest[:15]}…)"
        return f"{self.model or 'without a name'}{short}"

    @property
    def seeds_text(self) -> str:
        """The seeds in few words."""
        return seeds_text(self.seeds)

    @property
    def software_text(self) -> str:
        """The versions in one line."""
        parts = [f"{name} {number}" for name, number in self.package_versions.items()]
        if self.machine:
            facts = self.machine
            parts.append(f"{facts.get('system')} {facts.get('processor')}, {facts.get('cpus')} CPU")
        return ", ".join(parts)


def seeds_text(seeds: Sequence[int | None]) -> str:
    """Return seeds in few words: the ends of an unbroken range, or the first of them."""
    if not seeds:
        return "none"
    first = seeds[0]
    if first is not None and all(seed == first + place for place, seed in enumerate(seeds)):
        return f"{first}" if len(seeds) == 1 else f"{first} to {seeds[-1]}"
    shown = ", ".join(map(str, seeds[:8]))
    return shown if len(seeds) <= 8 else f"{shown} … ({len(seeds)} in all)"


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
