"""The built-in verifiers pass their grader tests, over all verticals of the catalogue."""

from __future__ import annotations

import pytest
from rleaas.sims import VERTICALS
from rleaas.sims.known import BROKEN_BY, known_episodes
from rleaas.verify import audit, definition_of, judge_of

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


def test_the_scenarios_that_break_a_verifier_are_there() -> None:
    ids = {scenario.id for name in VERTICALS for scenario in VERTICALS[name].scenarios}
    verifiers = {verifier_id for _, verifier_id in BUILT_IN}

    assert set(BROKEN_BY) <= verifiers
    assert {one for broken in BROKEN_BY.values() for one in broken} <= ids
