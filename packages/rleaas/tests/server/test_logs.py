"""How records of the log become lines."""

from __future__ import annotations

import json
import logging

import pytest
from rlcore import ConfigurationError, Secret
from rleaas.server.logs import JsonLines, TextLines, log_format, request_id_now, written

KEY = "rleaas_sk_abcdefghijklmnop"


def record(message: str, *arguments: object, **facts: object) -> logging.LogRecord:
    made = logging.LogRecord("rleaas.x", logging.WARNING, "f", 1, message, arguments, None)
    vars(made).update(facts)
    return made


def test_a_line_of_json_is_one_line_whatever_is_said() -> None:
    line = JsonLines().format(record("a\n%s", "b\u2028\ud800", status=200, ms=1.5, other="x"))

    said = json.loads(line)
    assert len(line.splitlines()) == 1
    assert said["message"] == "a\nb\u2028\ud800"
    assert (said["level"], said["status"], said["ms"]) == ("warning", 200, 1.5)
    assert "other" not in said


def test_keys_tokens_and_the_operators_own_secret_are_not_written() -> None:
    for lines in (JsonLines([Secret("hunter2")]), TextLines([Secret("hunter2")])):
        line = lines.format(record("key %s, Bearer abc.def, hunter2", KEY))
        assert not [one for one in (KEY, "abc.def", "hunter2") if one in line]
        assert line.count("[redacted]") == 3


def test_a_secret_in_a_traceback_is_not_written() -> None:
    made = record("it broke")
    try:
        raise ValueError(f"no {KEY}")
    except ValueError as error:
        made.exc_info = (type(error), error, error.__traceback__)

    text, object_ = TextLines().format(made), json.loads(JsonLines().format(made))
    assert KEY not in text
    assert "ValueError: no [redacted]" in text
    assert "ValueError: no [redacted]" in object_["exception"]


def test_what_is_logged_while_a_request_is_answered_has_its_id() -> None:
    token = request_id_now.set("req_1")
    try:
        assert json.loads(JsonLines().format(record("x")))["request_id"] == "req_1"
        assert "[req_1] x" in TextLines().format(record("x"))
        assert "[own] x" in TextLines().format(record("x", request_id="own"))
    finally:
        request_id_now.reset(token)
    assert json.loads(JsonLines().format(record("x")))["request_id"] is None


def test_a_line_break_cannot_pretend_to_be_another_record() -> None:
    line = TextLines().format(record("a\n2026-01-01T00:00:00Z ERROR rleaas fake"))
    assert line.splitlines()[1].startswith("    2026")


def test_the_format_is_the_arguments_then_the_environments_then_none() -> None:
    environ = {"RLEAAS_LOG_FORMAT": "json"}
    assert log_format("text", environ) == "text"
    assert log_format(None, environ) == "json"
    assert log_format(None, {"RLEAAS_LOG_FORMAT": ""}) is None
    with pytest.raises(ConfigurationError, match="'xml'"):
        log_format("xml", environ)


def test_without_a_format_only_warnings_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    told = logging.getLogger("rleaas.server.access")
    with written(None):
        told.info("a request")
        told.warning("a warning")
    with written("json"):
        told.info("a second request")
    told.warning("after the end")

    said = capsys.readouterr().err
    assert "a request" not in said
    assert "WARNING rleaas.server.access a warning" in said
    assert json.loads(said.splitlines()[1])["message"] == "a second request"
    assert len(said.splitlines()) == 2
