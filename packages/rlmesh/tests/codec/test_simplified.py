"""How often somebody is warned of values that were simplified."""

import logging

import pytest
from rlmesh.codec.simplified import MOST, Simplified


def test_each_place_is_told_of_once_and_not_more_than_so_many(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = logging.getLogger("rlmesh.of-a-test")
    simplified = Simplified("info values", log)
    with caplog.at_level(logging.WARNING, log.name):
        simplified.note(["$.a", "$.b"])
        simplified.note(["$.b", "$.a"])
        for step in range(100):
            simplified.note([f"$.key_{step}"])
    assert len(caplog.messages) == 1 + (MOST - 2) + 1
    assert "['$.a', '$.b']" in caplog.messages[0]
    assert "and more" in caplog.messages[-1]
