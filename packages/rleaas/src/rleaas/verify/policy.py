"""Reading what follows when a verifier fails an episode; the same wherever it is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rleaas.verify import logic as read
from rleaas.verify.verdict import FailurePolicy

KEYS: Final = ("hard_fail", "penalty", "log_failure")
WORST_PENALTY: Final = -1_000.0
"""A larger one would drown whatever else an episode is worth."""


def read_policy(given: Mapping[str, object], where: str) -> FailurePolicy:
    """The policy that a record describes; keys that are missing or null say the default.

    Raises:
        ConfigurationError: it has an unknown key, with the nearest one; a flag is neither true nor
            false, whatever a text says; the penalty rewards, or has no bound.
    """
    said = f"{where}: failure_policy"
    read.require_known(given, KEYS, said)
    penalty = read.number(given, "penalty", 0.0, said)
    if not WORST_PENALTY <= penalty <= 0:
        raise read.refused(
            said,
            f"penalty is from {WORST_PENALTY:g} to 0, not {penalty:g}",
            "It is added to the reward of an episode that fails: write -1.0 to take 1 away",
        )
    return FailurePolicy(
        hard_fail=read.flag(given, "hard_fail", False, said),
        penalty=penalty,
        log_failure=read.flag(given, "log_failure", True, said),
    )
