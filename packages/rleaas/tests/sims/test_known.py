"""The built-in verifiers pass their grader tests, over all verticals of the catalogue."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
import rleaas.sims
from rleaas.sims import VERTICALS
from rleaas.sims.audited import RECORD, passed_its_audit, recorded
from rleaas.sims.known import BROKEN_BY, known_episodes
from rleaas.verify import audit, definition_of, judge_of
from rleaas.verify.fingerprint import content_digest

BUILT_IN = [(name, str(one["id"])) for name in VERTICALS for one in VERTICALS[name].verifiers]


@pytest.mark.parametrize(("name", "verifier_id"), BUILT_IN)
def test_every_built_in_verifier_passes_its_audit(name: str, verifier_id: str) -> None:
    vertical = VERTICALS[name]
    definitions = {str(one["id"]): definition_of(one) for one in vertical.verifiers}
    known = known_episodes(vertical, verifier_id)

    found = audit(
        judge_of(definitions[verifier_id], definitions.__getitem__),
        good=known.good,
        bad=known.bad,
        repeats=2,
        probed=2,
        allow_empty=known.allow_empty,
    )

    assert found.passed, str(found)
    assert found.false_negatives.of == len(vertical.scenarios)
    assert found.false_positives.of >= 1
    digest = content_digest(verifier_id, definitions.__getitem__)
    if os.environ.get("RLEAAS_RECORD_AUDITS"):
        record(verifier_id, digest)
    assert recorded()[verifier_id] == digest, "it passes: record that with RLEAAS_RECORD_AUDITS=1"


def record(verifier_id: str, digest: str) -> None:
    """Write down that it passed, and forget those that are built in no more."""
    path = Path(rleaas.sims.__file__).with_name(RECORD)
    told = {**json.loads(path.read_text()), verifier_id: digest}
    ids = {one for _, one in BUILT_IN}
    kept = {one: told[one] for one in sorted(told) if one in ids}
    path.write_text(f"{json.dumps(kept, indent=1)}\n")
    recorded.cache_clear()


def test_every_built_in_verifier_is_recorded_and_nothing_else_is() -> None:
    assert recorded().keys() == {verifier_id for _, verifier_id in BUILT_IN}


def test_an_altered_definition_did_not_pass() -> None:
    vertical = VERTICALS["FinSim"]
    definitions = {str(one["id"]): definition_of(one) for one in vertical.verifiers}
    found = passed_its_audit("finsim_aml_check", definitions.__getitem__)
    own = definitions["finsim_aml_check"]
    definitions["finsim_aml_check"] = replace(own, logic={"conditions": ["true"]})

    assert found is True
    assert passed_its_audit("finsim_aml_check", definitions.__getitem__) is False
    assert passed_its_audit("somebody_elses", definitions.__getitem__) is False


def test_the_scenarios_that_break_a_verifier_are_there() -> None:
    ids = {scenario.id for name in VERTICALS for scenario in VERTICALS[name].scenarios}
    verifiers = {verifier_id for _, verifier_id in BUILT_IN}

    assert set(BROKEN_BY) <= verifiers
    assert {one for broken in BROKEN_BY.values() for one in broken} <= ids
