"""The built-in verifiers as they were when they passed their audit.

The package's own tests (`tests/sims/test_known.py`) audit each of them with the references and the
bad solutions of its vertical, and compare these digests: a verifier that judges by anything else is
not the one that was audited. `RLEAAS_RECORD_AUDITS=1` has those tests write what passed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Final

from rlcore import VerifierNotFound

from rleaas.verify import Definition
from rleaas.verify.fingerprint import content_digest

RECORD: Final = "audited.json"


def passed_its_audit(verifier_id: str, find: Callable[[str], Definition]) -> bool:
    """Whether this is a built-in verifier that judges by just what was audited."""
    expected = recorded().get(verifier_id)
    if expected is None:
        return False
    try:
        return content_digest(verifier_id, find) == expected
    except VerifierNotFound:
        return False


@cache
def recorded() -> dict[str, str]:
    """The digest of each built-in verifier that passed, by its id."""
    told: dict[str, str] = json.loads((files("rleaas.sims") / RECORD).read_text("utf-8"))
    return told
