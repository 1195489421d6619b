"""What the server writes about itself: lines of text or of JSON, each with the request's id.

Nothing that looks like a key or token gets into a line, whoever logged it.
"""

import json
import logging
import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final, Literal

from rlcore import ConfigurationError, Secret
from rlcore.log import PACKAGES, REDACTED, redact

LogFormat = Literal["text", "json"]
_FORMATS: Final[Mapping[str, LogFormat]] = {"text": "text", "json": "json"}
LOG_FORMAT_VARIABLE: Final = "RLEAAS_LOG_FORMAT"
ACCESS: Final = "server.access"
# The facts of a request, in the order in which they are written.
FACTS: Final = ("method", "route", "status", "ms", "organisation", "key")
# Of the request that is being answered; whatever is logged meanwhile has it.
request_id_now: ContextVar[str | None] = ContextVar("request_id", default=None)


def log_format(argument: str | None, environ: Mapping[str, str]) -> LogFormat | None:
    """The format that is asked for: the argument, else `RLEAAS_LOG_FORMAT`; None: neither.

    Raises:
        ConfigurationError: there is no such format.
    """
    asked = argument or environ.get(LOG_FORMAT_VARIABLE) or None
    if asked is None:
        return None
    if asked in _FORMATS:
        return _FORMATS[asked]
    raise ConfigurationError(
        f"{asked!r} is not a format of logs",
        code="unknown_log_format",
        hint=f"Use one of {', '.join(_FORMATS)}",
    )


@contextmanager
def written(asked: LogFormat | None, secrets: Iterable[Secret] = ()) -> Generator[None]:
    """Write what is logged to standard error while the block lasts.

    Args:
        asked: the format. None writes warnings and errors as text; with one, each request and what
            else the packages tell is written too.
        secrets: what must not be written, beside what looks like a key or token.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(secrets) if asked == "json" else TextLines(secrets))
    root = logging.getLogger()
    told = [logging.getLogger(name) for name in PACKAGES] if asked else []
    before = [one.level for one in told]
    root.addHandler(handler)
    for one in told:
        one.setLevel(logging.INFO)
    try:
        yield
    finally:
        for one, level in zip(told, before, strict=True):
            one.setLevel(level)
        root.removeHandler(handler)


class _Lines(logging.Formatter):
    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        super().__init__()
        self._secrets = [text for one in secrets if (text := one.reveal())]

    def _clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        return redact(text)

    def _trace(self, record: logging.LogRecord) -> str | None:
        parts = [self.formatException(record.exc_info)] if record.exc_info else []
        parts += [record.stack_info] if record.stack_info else []
        return "\n".join(parts) or None


class JsonLines(_Lines):
    """One object a line; `time`, `level`, `logger` and `message` are always there."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        said: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._clean(record.getMessage()),
            "request_id": _request_id(record),
        }
        facts = vars(record)
        said.update((name, facts[name]) for name in FACTS if name in facts)
        trace = self._trace(record)
        if trace is not None:
            said["exception"] = self._clean(trace)
        return json.dumps(said, ensure_ascii=True)


class TextLines(_Lines):
    """A line for people, and a traceback below it where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        about = _request_id(record)
        head = f"{_time(record)} {record.levelname} {record.name}"
        # A line break in a message must not look like another record.
        message = record.getMessage().replace("\r", "\\r").replace("\n", "\n    ")
        line = f"{head} [{about}] {message}" if about else f"{head} {message}"
        trace = self._trace(record)
        return self._clean(line if trace is None else f"{line}\n{trace}")


def _request_id(record: logging.LogRecord) -> str | None:
    own = vars(record).get("request_id")
    return own if isinstance(own, str) else request_id_now.get()


def _time(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
