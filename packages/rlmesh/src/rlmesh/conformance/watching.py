"""Whoever follows a check while it goes on."""

from __future__ import annotations

from rlmesh.conformance.verdicts import Finding


class Watcher:
    """Hears how a check goes on, in any thread; this one makes nothing of it."""

    def glance(self) -> None:
        """Hear that a call is waited for; said several times a second."""

    def call(self, what: str) -> None:
        """Hear which call on the environment comes next."""

    def about(self, environment: str, digest: str | None, names: tuple[str, ...]) -> None:
        """Hear what was found to be checked, and by which checks."""

    def judging(self, name: str) -> None:
        """Hear which check comes next."""

    def found(self, finding: Finding) -> None:
        """Hear what the check has found."""
