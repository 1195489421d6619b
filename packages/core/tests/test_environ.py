import os

import pytest
from rlcore.environ import defaulted


def test_a_default_is_gone_after_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RLCORE_TEST", raising=False)
    with defaulted("RLCORE_TEST", "ours"):
        assert os.environ["RLCORE_TEST"] == "ours"
    assert "RLCORE_TEST" not in os.environ


def test_a_variable_that_is_set_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLCORE_TEST", "theirs")
    with defaulted("RLCORE_TEST", "ours"):
        assert os.environ["RLCORE_TEST"] == "theirs"
    assert os.environ["RLCORE_TEST"] == "theirs"
