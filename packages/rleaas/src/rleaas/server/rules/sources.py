"""Where an environment comes from: the grammar of its `source`."""

from dataclasses import dataclass
from enum import Enum

SUPPORTED = "gym://ID, python://module:attr, tcp://host:port or unix:///path"
_NO_SOURCE = frozenset({"", "custom"})


class SourceKind(Enum):
    """Who runs the environment."""

    HOSTED = "hosted"
    SERVED_ELSEWHERE = "served elsewhere"


@dataclass(frozen=True, slots=True)
class Source:
    """A source that can be brought up: served by us, or already served at an address."""

    text: str
    kind: SourceKind


class SourceProblem(ValueError):
    """The text is no source; the message says why and what would be one."""


def parse_source(text: str | None) -> Source | None:
    """Read a source; None when the record names none (the published client sends "custom").

    Raises:
        SourceProblem: the text names a source of a kind that this server does not have.
    """
    if text is None or text.strip() in _NO_SOURCE:
        return None
    text = text.strip()
    scheme, separator, target = text.partition("://")
    if not separator:
        raise SourceProblem(f"source {text!r} has no scheme; use {SUPPORTED}")
    if not target:
        raise SourceProblem(f"source {text!r} names nothing after '://'; use {SUPPORTED}")
    if scheme == "gym":
        return Source(text, SourceKind.HOSTED)
    if scheme == "python":
        module, colon, attribute = target.partition(":")
        if not (module and colon and attribute):
            raise SourceProblem(f"source {text!r} is not of the form python://module:attr")
        return Source(text, SourceKind.HOSTED)
    if scheme in {"tcp", "unix"}:
        return Source(text, SourceKind.SERVED_ELSEWHERE)
    raise SourceProblem(f"source {text!r} has the unknown scheme {scheme!r}; use {SUPPORTED}")


def no_source_reason(vertical: str | None) -> str:
    """Why an environment without a source cannot be served."""
    if vertical:
        return (
            f"no source: this server has no built-in world for vertical {vertical!r}; "
            f"register it with a source ({SUPPORTED})"
        )
    return f"no source: register the environment with one of {SUPPORTED}"
