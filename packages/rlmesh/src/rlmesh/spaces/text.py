"""Strings."""

from __future__ import annotations

import operator
import string
from typing import Any, ClassVar, cast

import numpy as np
from rlcore import ConfigurationError

from rlmesh.spaces.coerce import as_text, invalid, shown
from rlmesh.spaces.space import Space
from rlmesh.values import Backend

ALPHANUMERIC = "".join(sorted(string.ascii_letters + string.digits))
"""What gymnasium's Text allows by default."""


class Text(Space):
    """Strings of a bounded number of characters out of a set.

    Args:
        max_length: the greatest number of characters.
        min_length: the least number; zero allows the empty string.
        charset: the characters; none given, or an empty string, allows any.

    Raises:
        ConfigurationError: no string can be of such a length.
    """

    __slots__ = ("charset", "max_length", "min_length")
    kind: ClassVar[str] = "text"
    max_length: int
    min_length: int
    charset: str

    def __init__(
        self, max_length: int | Text, min_length: int = 1, charset: str | None = None
    ) -> None:
        if isinstance(max_length, Text):
            max_length, min_length, charset = max_length._arguments()
        least, most = operator.index(min_length), operator.index(cast("int", max_length))
        if not 0 <= least <= most < 2**63:
            raise ConfigurationError(f"a Text space cannot have {least} to {most} characters")
        characters = "".join(sorted(set(charset or "")))
        try:
            characters.encode()
        except UnicodeEncodeError as error:
            raise ConfigurationError(f"{shown(charset)} holds a lone surrogate") from error
        self._settle(most, least, characters, max_length=most, min_length=least, charset=characters)

    @property
    def shape(self) -> list[int]:
        """No dimensions."""
        return []

    @property
    def dtype(self) -> str:
        """The name of the type of a byte, which is what text travels as."""
        return "uint8"

    def draw(self, generator: np.random.Generator, backend: Backend) -> str:
        """Return an example of any allowed length, at most 64 characters above the least.

        Where any character is allowed, it has only letters and digits.
        """
        # From published servers, gymnasium's default arrives as "any", and its environments refuse
        # other characters.
        characters = self.charset or ALPHANUMERIC
        most = min(self.max_length, self.min_length + 64)
        length = int(generator.integers(self.min_length, most, endpoint=True))
        return "".join(characters[i] for i in generator.integers(len(characters), size=length))

    def check(self, value: object, path: str = "$") -> None:
        """Do nothing for a string of an allowed length, made of allowed characters."""
        text = as_text(value, path)
        if not self.min_length <= len(text) <= self.max_length:
            raise invalid(
                path,
                f"has {len(text)} characters; it must have {self.min_length} to {self.max_length}",
            )
        strange = set(text) - set(self.charset) if self.charset else None
        if strange:
            raise invalid(path, f"holds {min(strange)!r}, which is not in {shown(self.charset)}")

    def __repr__(self) -> str:
        charset = f", charset={shown(self.charset)}" if self.charset else ""
        return f"Text({self.max_length}, min_length={self.min_length}{charset})"

    def _details(self) -> dict[str, object]:
        return {
            "min_length": self.min_length,
            "max_length": self.max_length,
            "charset": self.charset,
        }

    def _arguments(self) -> tuple[Any, ...]:  # Any: what the constructor takes
        return self.max_length, self.min_length, self.charset
