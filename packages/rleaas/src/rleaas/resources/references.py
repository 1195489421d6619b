"""What names things in calls: an id, a record or a handle; and the words that calls may say."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, cast

from rlcore import ConfigurationError

from rleaas._flow import request as build
from rleaas.resources.environment_routes import EnvironmentRef, reference
from rleaas.resources.kinds import field_of


class Identified(Protocol):
    """Something with an id: a handle, or a record."""

    @property
    def id(self) -> str:
        """The id."""
        ...


IdRef = str | Identified
"""A thing by its id, by its name where it has one, or itself."""


def id_of(thing: IdRef, what: str) -> str:
    """Return the thing's id, or the text that names it.

    Raises:
        ConfigurationError: it is empty, names nothing, or is something of another kind.
    """
    text = thing if isinstance(thing, str) else field_of(thing, what, "id", str)
    if text is None:
        raise ConfigurationError(
            f"{thing!r} does not name one {what}", hint="Pass an id, a name, a record or a handle."
        )
    build.segment(text, f"{what} id")
    return text


def ids_of(things: Sequence[IdRef], what: str) -> list[str]:
    """Return the ids of several things, in their order.

    Raises:
        ConfigurationError: one is empty or names nothing, or the whole is one text.
    """
    _require_list(things, f"{what}s")
    return [id_of(one, what) for one in things]


def texts_of(texts: Sequence[str], what: str) -> list[str]:
    """Return several texts, in their order.

    Raises:
        ConfigurationError: one is no text, or the whole is one.
    """
    _require_list(texts, what)
    given = cast("list[object]", [*texts])
    for one in given:
        if not isinstance(one, str):
            raise ConfigurationError(
                f"{one!r} is no text, as one of {what}", hint="Pass a list of texts."
            )
    return cast("list[str]", given)


def kinds_of(kinds: Sequence[str] | None) -> list[str] | None:
    """Return kinds of events, of which one may be said alone; None: all of them.

    Raises:
        ConfigurationError: one is no text.
    """
    if kinds is None:
        return None
    return texts_of([kinds] if isinstance(kinds, str) else kinds, "kinds of events")


def _require_list(things: object, what: str) -> None:
    if isinstance(things, str | bytes):
        raise ConfigurationError(
            f"{things!r} is one text, not a list of {what}", hint=f"Pass [{things!r}]."
        )


def environment_of(*candidates: EnvironmentRef | None) -> str | None:
    """Return what names the environment of the first candidate that is one; None: none is."""
    for one in candidates:
        if one is not None and one != "":
            return reference(one)
    return None


def require_type(value: object, kind: type[object], what: str) -> None:
    """Refuse a value of another type, without telling it.

    Raises:
        ConfigurationError: it is of another type; nothing was sent.
    """
    if not isinstance(value, kind):
        raise ConfigurationError(
            f"{what} is not of the type {kind.__name__}", hint=f"It is a {type(value).__name__}."
        )


def require_one_of(value: object, allowed: Collection[str], what: str) -> str:
    """Return the value, which is one of those allowed.

    Raises:
        ConfigurationError: it is not; nothing was sent.
    """
    if not isinstance(value, str) or value not in allowed:
        raise ConfigurationError(
            f"{value!r} is not {what}", hint=f"Use one of {', '.join(allowed)}."
        )
    return value


def require_tier(tier: int) -> int:
    """Return the tier.

    Raises:
        ConfigurationError: it is not 1, 2, 3 or 4; nothing was sent.
    """
    if isinstance(tier, bool) or tier not in (1, 2, 3, 4):
        raise ConfigurationError(f"{tier!r} is not a tier", hint="Use 1, 2, 3 or 4.")
    return tier


def plain(value: object) -> object:
    """Return mappings and sequences as the dictionaries and lists that JSON has."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(item) for item in cast("Sequence[object]", value)]
    return value


def given(**fields: object) -> dict[str, object]:
    """Return the fields that are not None, as JSON has them."""
    return {name: plain(value) for name, value in fields.items() if value is not None}
