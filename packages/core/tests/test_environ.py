import os
from collections.abc import Iterator

import pytest
from rlcore.environ import change, defaulted, snapshot


def test_a_default_is_gone_after_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RLCORE_TEST", raising=False)
    with defaulted("RLCORE_TEST", "ours"):
        assert os.environ["RLCORE_TEST"] == "ours"
    assert "RLCORE_TEST" not in os.environ


def test_a_variable_that_is_changed_is_what_is_read_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RLCORE_TEST", "before")
    change("RLCORE_TEST", "after")
    assert snapshot()["RLCORE_TEST"] == "after"


def test_a_variable_that_is_set_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLCORE_TEST", "theirs")
    with defaulted("RLCORE_TEST", "ours"):
        assert os.environ["RLCORE_TEST"] == "theirs"
    assert os.environ["RLCORE_TEST"] == "theirs"


def test_a_snapshot_is_taken_while_another_thread_takes_variables_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Fading(dict[str, str]):
        def __iter__(self) -> Iterator[str]:
            names = list(self.keys())
            self.pop("GONE")
            return iter(names)

    monkeypatch.setattr("os.environ", Fading({"GONE": "1", "KEPT": "2"}))
    assert snapshot() == {"KEPT": "2"}
