"""What a world's configuration may say."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rlcore import ConfigurationError

from rleaas.sims.state import Json

_LONGEST_NAME: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One key of a world's `config`.

    Attributes:
        name: the key.
        description: the effect that it has.
        default: its value when it is not given.
        choices: the words that it may be, of a choice.
        least: the smallest number, of a number.
        most: the largest.
        words: what words are accepted for numbers.
        also: another name that the key is known by.
    """

    name: str
    description: str
    default: Json
    choices: tuple[str, ...] = ()
    least: int = 0
    most: int = 0
    words: Mapping[str, int] | None = None
    also: str | None = None

    def settle(self, value: Json, where: str) -> Json:
        """The value to use.

        Raises:
            ConfigurationError: it may not be that.
        """
        if self.choices:
            by_word = {choice.lower(): choice for choice in self.choices}
            found = by_word.get(value.lower()) if isinstance(value, str) else None
            if found is None:
                raise self._refused(value, where, f"one of {', '.join(self.choices)}")
            return found
        words = self.words or {}
        number = words.get(value.lower(), value) if isinstance(value, str) else value
        if not isinstance(number, int) or isinstance(number, bool):
            known = f", or {', '.join(words)}" if words else ""
            raise self._refused(
                value, where, f"a whole number from {self.least} to {self.most}{known}"
            )
        if not self.least <= number <= self.most:
            raise self._refused(value, where, f"from {self.least} to {self.most}")
        return number

    def _refused(self, value: Json, where: str, rule: str) -> ConfigurationError:
        return ConfigurationError(
            f"{where}: config.{self.name} is {rule}, not {value!r}",
            code="invalid_config",
            hint=self.description,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesOption(Option):
    """A list of names, or how many of the vertical's own.

    Attributes:
        own: those of the vertical.
    """

    own: tuple[str, ...]

    def settle(self, value: Json, where: str) -> Json:
        """The names to use.

        Raises:
            ConfigurationError: they are too few, too many, or none.
        """
        if isinstance(value, int) and not isinstance(value, bool):
            if not self.least <= value <= len(self.own):
                raise self._refused(value, where, f"from {self.least} to {len(self.own)}")
            return list(self.own[:value])
        names: list[Json] = list(value) if isinstance(value, list) else []  # pyright: ignore[reportUnknownArgumentType]
        fine = all(isinstance(one, str) and 0 < len(one) <= _LONGEST_NAME for one in names)
        if not fine or not self.least <= len(set(map(str, names))) == len(names) <= self.most:
            rule = f"{self.least} to {self.most} different names, or how many of the usual ones"
            raise self._refused(value, where, rule)
        return list(names)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordOption(Option):
    """A word or a number, whichever it is."""

    def settle(self, value: Json, where: str) -> Json:
        """The word.

        Raises:
            ConfigurationError: it is neither, empty or long.
        """
        is_number = isinstance(value, int) and not isinstance(value, bool)
        word = str(value) if isinstance(value, str) or is_number else ""
        if not 0 < len(word) <= _LONGEST_NAME:
            raise self._refused(value, where, f"a word of up to {_LONGEST_NAME} characters")
        return word


FIRST_VERSION: Final = "1"
COMMON = (
    Option(
        name="org_size",
        description="how many records of people or customers the organisation has",
        default=24,
        least=1,
        most=1_000,
        words={"small": 8, "medium": 24, "large": 200},
    ),
    Option(
        name="complexity_ceiling",
        description="the highest tier of the scenarios that are drawn",
        default=4,
        least=1,
        most=4,
    ),
    Option(
        name="split",
        description="of which scenarios the world draws when it is told of none",
        default="training",
        choices=("training", "evaluation", "all"),
    ),
    WordOption(
        name="data_version",
        description="which version of the organisations' records the world has; any word names one",
        default=FIRST_VERSION,
    ),
)
"""What every world can be told."""
PUBLISHED: Final = ("departments", "customer_accounts")
"""Words of the published configuration that worlds take; where they have no effect, it is said."""


def without_effect(options: Sequence[Option], given: Mapping[str, Json]) -> list[str]:
    """The keys of a configuration that are kept, and change nothing in a world of these options."""
    known = {name for option in options for name in (option.name, option.also)}
    return [key for key in given if key in PUBLISHED and key not in known]


def settle(
    options: Sequence[Option], given: Mapping[str, Json] | None, where: str
) -> dict[str, Json]:
    """The whole configuration: what is given, and defaults.

    Raises:
        ConfigurationError: a key is unknown, with the nearest one, or its value is wrong.
    """
    names = {option.name: option for option in options}
    names |= {option.also: option for option in options if option.also}
    settled = {option.name: option.default for option in options}
    for key, value in (given or {}).items():
        option = names.get(key)
        if option is None and key in PUBLISHED:
            settled[key] = value
            continue
        if option is None:
            near = difflib.get_close_matches(key, names, n=1)
            raise ConfigurationError(
                f"{where} has no config.{key}",
                code="invalid_config",
                hint=f"Did you mean {near[0]!r}?" if near else f"It has {', '.join(sorted(names))}",
            )
        if value is not None:
            settled[option.name] = option.settle(value, where)
    return settled
