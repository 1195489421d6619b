"""What an environment says of its language: the pieces of its actions, examples of its texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from rlcore import ConfigurationError

LANGUAGE = "language"
"""The key of an environment's metadata, and of a training config, that declares it."""
_KEYS = ("pieces", "ends", "texts")


@dataclass(frozen=True, slots=True)
class Language:
    """A closed vocabulary for actions.

    Attributes:
        pieces: what actions are made of; a model made here says nothing else. Empty: anything.
        ends: those pieces after which an action is complete.
        texts: examples of observations, from which the tokenizer learns.
    """

    pieces: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """The object that reads to this again."""
        return {key: list(cast("Sequence[str]", getattr(self, key))) for key in _KEYS}


def read_language(declared: object, where: str) -> Language:
    """The language that `declared` (JSON) describes; `where` it was found, for the message.

    Raises:
        ConfigurationError: it describes none.
    """
    if not isinstance(declared, Mapping):
        raise _wrong(where, f"must be an object with {', '.join(_KEYS)}, got {declared!r}")
    given = cast("Mapping[str, object]", declared)
    strange = [key for key in given if key not in _KEYS]
    if strange:
        raise _wrong(where, f"has the unknown key {strange[0]!r}; it takes {', '.join(_KEYS)}")
    language = Language(**{key: _texts(given.get(key, ()), f"{where}.{key}") for key in _KEYS})
    if len(set(language.pieces)) != len(language.pieces):
        raise _wrong(f"{where}.pieces", "names a piece twice")
    foreign = [end for end in language.ends if end not in language.pieces]
    if foreign:
        raise _wrong(f"{where}.ends", f"has {foreign[0]!r}, which is not among the pieces")
    return language


def _texts(value: object, where: str) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise _wrong(where, f"must be a list of texts, got {value!r}")
    items = tuple(cast("Sequence[object]", value))
    for item in items:
        if not isinstance(item, str) or not item:
            raise _wrong(where, f"must be a list of texts, has {item!r}")
    return cast("tuple[str, ...]", items)


def _wrong(where: str, what: str) -> ConfigurationError:
    return ConfigurationError(f"{where} {what}", code="invalid_training_config")
