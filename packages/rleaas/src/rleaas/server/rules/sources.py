"""Where an environment comes from: the grammar of its `source`."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from rlcore import PermissionDeniedError

from rleaas.server.rules.worlds import SCHEME, world_source
from rleaas.sims import VERTICALS

SUPPORTED = "gym://ID, python://module:attr, sim://FinSim, tcp://host:port or unix:///path"
ALLOW_CODE: Final = "rleaas serve --allow-code"
_NO_SOURCE = frozenset({"", "custom"})
# Gymnasium's environments around those of gym, whose id, in the kwargs, may name any module.
_WRAPPERS: Final = ("GymV21Environment-", "GymV26Environment-")


class SourceKind(Enum):
    """Who runs the environment."""

    HOSTED = "hosted"
    SERVED_ELSEWHERE = "served elsewhere"


@dataclass(frozen=True, slots=True)
class Source:
    """A source that can be brought up: served by us, or already served at an address."""

    text: str
    kind: SourceKind

    @property
    def is_code(self) -> bool:
        """Whether it names what runs as, or is dialled with the rights of, the server's user."""
        scheme, _, target = self.text.partition("://")
        if scheme == "gym":
            return ":" in target or target.startswith(_WRAPPERS)
        return scheme in {"python", "unix"}


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
    if scheme == SCHEME:
        found = world_source(target)
        if found is None:
            raise SourceProblem(
                f"source {text!r} names no built-in world; there are {', '.join(VERTICALS)}"
            )
        return Source(found, SourceKind.HOSTED)
    if scheme in {"tcp", "unix"}:
        return Source(text, SourceKind.SERVED_ELSEWHERE)
    raise SourceProblem(f"source {text!r} has the unknown scheme {scheme!r}; use {SUPPORTED}")


def require_permitted(source: Source | None, *, may_run_code: bool) -> None:
    """Refuse code of those who are not trusted with the account that the server runs in.

    Raises:
        PermissionDeniedError: the source is code, and its organisation may not bring any.
    """
    if source is None or may_run_code or not source.is_code:
        return
    raise PermissionDeniedError(
        f"the source {source.text!r} is code, which only the operator's organisation may register",
        code="code_not_allowed",
        hint=f"Use gym://ID or tcp://host:port; the operator can allow code with {ALLOW_CODE}",
    )


def no_source_reason(vertical: str | None) -> str:
    """Why an environment without a source cannot be served."""
    if vertical:
        return (
            f"no source: this server has no built-in world for vertical {vertical!r}; "
            f"register it with a source ({SUPPORTED})"
        )
    return f"no source: register the environment with one of {SUPPORTED}"
