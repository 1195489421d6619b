"""Checks of a served environment: identity, and what the wire does to values."""

from __future__ import annotations

from rlcore import Error

from rlmesh.conformance.evidence import Evidence, need, unseen
from rlmesh.conformance.verdicts import Finding, failed, passed, skipped


def digest_stable(evidence: Evidence) -> Finding:
    """Two dials find the same contract."""
    mine = evidence.first.contract
    if mine is None:
        raise unseen()
    if isinstance(mine, Error):
        return skipped(f"there is no contract: {mine.message}")
    second = evidence.second
    if second.unmade is not None:
        return skipped("there was no second dial; see made_again")
    its = need(second.digest)
    if mine.digest != its:
        fix = "A factory has to make the same spaces and metadata each time."
        return failed(f"the first dial found {mine.digest}, the second {its}", fix)
    return passed(f"two dials found {its[:19]}")


def values_survive(evidence: Evidence) -> Finding:
    """Observations and actions come through the codec of the contract as they are."""
    lost = need(evidence.first.lost)
    if lost:
        return failed(lost[0], "Declare spaces that hold the values as they are.")
    return passed("observations and actions come through as they are")
