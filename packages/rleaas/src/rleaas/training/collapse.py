"""A policy that has stopped to try anything, and has nothing to show for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from rleaas.training.trainer import Progress

COLLAPSE = "reward_collapse_alert"
"""The kind of the alert."""
THRESHOLD = "policy_entropy"
"""What the alert calls the limit that was passed."""
LEAST_ENTROPY = 1e-3
"""In nats: a choice of two is then made one way in 9,999 of 10,000 cases."""


class CollapseWatch:
    """Tells once of a policy whose entropy is gone while its returns are no better.

    A policy that has learned its task may be as sure as it likes: it is one whose running mean is
    not above its first, or has lost at least half of what it had gained, that can learn no more, as
    it never tries another action. The entropy is that of choices; the density of continuous actions
    has one that says nothing by itself, so that such trainings are not watched.
    """

    def __init__(self) -> None:
        self._first: float | None = None
        self._peak: float | None = None
        self._told = False

    def look(
        self, progress: Progress, diagnostics: Mapping[str, float]
    ) -> dict[str, object] | None:
        """Look at an update; what the alert says, if this is when to raise it."""
        average, entropy = progress.avg_reward, diagnostics.get("entropy")
        if average is None:
            return None
        if self._first is None or self._peak is None:
            self._first = self._peak = average
        self._peak = max(self._peak, average)
        if self._told or entropy is None or not entropy < LEAST_ENTROPY:
            return None
        if average > (self._first + self._peak) / 2 or (progress.success_rate or 0.0) >= 0.5:
            return None
        self._told = True
        return {
            "threshold": THRESHOLD,
            "limit": LEAST_ENTROPY,
            "value": entropy,
            "avg_reward": average,
            "episode": progress.episode,
            "stopped": False,
        }


def watch_of(contract: Mapping[str, object] | None) -> CollapseWatch | None:
    """The watch of a training on an environment of this contract; None for continuous actions."""
    space = cast("Mapping[str, object]", (contract or {}).get("action_space") or {})
    return None if space.get("kind") in (None, "box") else CollapseWatch()
