"""The digest of what a verifier judges by: whether it is still the one that was tested."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict

from rleaas.verify.definition import LLM_JUDGE, Definition, policy_of, to_json


def fingerprint(verifier_id: str, find: Callable[[str], Definition], model: str | None) -> str:
    """The digest of all that a verifier judges by: its components too, and the model."""
    known = _all(verifier_id, find)
    told: list[object] = [to_json(one) for one in known]
    if any(one.type == LLM_JUDGE for one in known):
        told.append(model)
    return _digest(told)


def content_digest(verifier_id: str, find: Callable[[str], Definition]) -> str:
    """The same without names and versions, which differ from one place that keeps it to another.

    Raises:
        ConfigurationError: a failure policy is wrong.
    """
    return _digest(
        [
            {
                "id": one.id,
                "type": one.type,
                "logic": dict(one.logic),
                "failure_policy": asdict(policy_of(one)),
            }
            for one in _all(verifier_id, find)
        ]
    )


def _all(verifier_id: str, find: Callable[[str], Definition]) -> Sequence[Definition]:
    known: dict[str, Definition] = {}
    waiting = [verifier_id]
    while waiting:
        one = waiting.pop()
        if one not in known:
            known[one] = find(one)
            waiting += [part for part, _, _ in known[one].components]
    return [known[one] for one in sorted(known)]


def _digest(told: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
