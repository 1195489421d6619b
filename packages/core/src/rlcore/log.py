"""The loggers of the three packages, and a filter that keeps secrets out of them."""

from __future__ import annotations

import logging
import re
from typing import Literal

PACKAGES = ("rlcore", "rlmesh", "rleaas")
REDACTED = "[redacted]"

_SECRETS = re.compile(
    r"(?P<keep>\bBearer\s+)[^\s'\",;]+"
    r"|\brleaas_sk_[A-Za-z0-9_-]+"
    r"|\brlt1\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+",
    re.IGNORECASE,
)


def logger(name: Literal["rlcore", "rlmesh", "rleaas"], room: str = "") -> logging.Logger:
    """Return the logger of a package, or of one of its rooms, with the redaction filter on it."""
    found = logging.getLogger(f"{name}.{room}" if room else name)
    # A filter of a parent logger does not see records of its children: each logger gets its own.
    if not any(isinstance(one, RedactionFilter) for one in found.filters):
        found.addFilter(RedactionFilter())
    return found


def redact(text: str) -> str:
    """Return the text with bearer tokens, API keys and endpoint tokens replaced."""
    return _SECRETS.sub(lambda match: f"{match['keep'] or ''}{REDACTED}", text)


class RedactionFilter(logging.Filter):
    """Replaces bearer tokens, API keys and endpoint tokens in what is logged."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record's message where it holds a secret; every record passes."""
        message = record.getMessage()
        redacted = redact(message)
        if redacted != message:
            record.msg = redacted
            record.args = ()
        return True
