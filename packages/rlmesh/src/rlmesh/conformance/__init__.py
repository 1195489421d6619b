"""Checks that ship: whether an environment keeps its promises, from code, pytest, or the shell."""

from typing import TYPE_CHECKING

from rlmesh.conformance.apart import check_apart
from rlmesh.conformance.catalogue import CHECKS
from rlmesh.conformance.run import check
from rlmesh.conformance.verdicts import Finding, Place, Report, Verdict

if TYPE_CHECKING:
    from rlmesh.conformance.pytest_face import EnvConformance

__all__ = [
    "CHECKS",
    "EnvConformance",
    "Finding",
    "Place",
    "Report",
    "Verdict",
    "check",
    "check_apart",
]


if not TYPE_CHECKING:
    # Only those who write tests need pytest.
    def __getattr__(name: str) -> object:
        if name == "EnvConformance":
            from rlmesh.conformance.pytest_face import EnvConformance

            return EnvConformance
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
