"""A platform's key is kept when it is first seen, and another one is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rlcore import ConfigurationError, ReportNotVerified
from rleaas.cli.known_keys import known_keys, trusted
from rleaas.models import ReportKey

URL = "https://platform.example"
REPORT = Path("report.json")


def key(letter: str) -> ReportKey:
    return ReportKey(algorithm="Ed25519", key_id=letter * 16, public_key=f"-----{letter}-----\n")


def test_the_first_key_is_kept_and_known_from_then_on(tmp_path: Path) -> None:
    file = known_keys({"RLEAAS_CONFIG": str(tmp_path / "new" / "config.toml")})

    assert trusted(file, URL, key("a"), REPORT) == "first_use"
    assert trusted(file, URL, key("a"), REPORT) == "known"
    assert trusted(file, "https://other.example", key("b"), REPORT) == "first_use"
    assert trusted(file, URL, key("a"), REPORT) == "known"


def test_a_platform_that_has_another_key_now_is_refused_and_the_first_is_kept(
    tmp_path: Path,
) -> None:
    file = tmp_path / "report_keys.json"
    trusted(file, URL, key("a"), REPORT)

    with pytest.raises(ReportNotVerified) as refusal:
        trusted(file, URL, key("b"), REPORT)

    assert refusal.value.code == "report_key_changed"
    assert "b" * 16 in str(refusal.value)
    assert str(file) in str(refusal.value)
    assert json.loads(file.read_text()) == {URL: key("a").public_key}


@pytest.mark.parametrize("content", ["", "[]", "{", "\x00", "3"])
def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path, content: str) -> None:
    file = tmp_path / "report_keys.json"
    file.write_text(content)

    with pytest.raises(ConfigurationError, match=r"report_keys\.json"):
        trusted(file, URL, key("a"), REPORT)
    assert file.read_text() == content
