"""What every verifier can do."""

from __future__ import annotations

from typing import Protocol

from rleaas.verify.trajectory import Trajectory
from rleaas.verify.verdict import Verdict
from rleaas.verify.work import Work


class Judge(Protocol):
    """Judges whole episodes."""

    @property
    def verifier(self) -> str:
        """Its id; empty: it has none."""
        ...

    @property
    def version(self) -> int | None:
        """Its version, which its verdicts name."""
        ...

    @property
    def looks_at_observations(self) -> bool:
        """Whether it may ask for what was observed: a recorder keeps it only then."""
        ...

    def judge(self, trajectory: Trajectory, work: Work | None = None) -> Verdict:
        """Say whether the episode is good, how good, and why.

        Args:
            trajectory: the episode.
            work: what a verdict that this one is a part of may still look at.

        Raises:
            GraderError: it could not judge, as a language model did not answer as it was asked, or
                a function failed. That is no verdict: neither a score of 0 nor a pass.
        """
        ...
