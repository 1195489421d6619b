"""What has to be installed before the quickstart begins, rather than after two minutes of it."""

from __future__ import annotations

from importlib.util import find_spec

from rlcore import MissingDependencyError

NEEDED = (
    "rlmesh",
    "gymnasium",
    "fastapi",
    "sqlalchemy",
    "stable_baselines3",
    "matplotlib",
    "plotext",
)
NEEDED_FOR_WORLDS = (
    "rlmesh",
    "gymnasium",
    "fastapi",
    "sqlalchemy",
    "torch",
    "fastjsonschema",
    "pyarrow",
    "matplotlib",
    "plotext",
)


def check_installed(packages: tuple[str, ...] = NEEDED) -> None:
    """Refuse to begin where something is missing.

    Raises:
        MissingDependencyError: it names what is missing, and the extra that has it.
    """
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise MissingDependencyError(
            f"the quickstart needs {', '.join(missing)}, which is not installed",
            hint="Install everything: pip install 'rleaas[all]'",
        )
