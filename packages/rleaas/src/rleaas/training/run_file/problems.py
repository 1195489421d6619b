"""What is wrong in a config.json, all of it, and where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rlcore import ConfigurationError

from rleaas.training.run_file.positions import Node, Position, member_path

OF_THE_KEY = ("unknown_config_key", "foreign_config_key", "not_available")
"""Codes of refusals that are about a key, whatever its value is."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, or that has another effect than somebody may think.

    Attributes:
        path: what is meant, such as `training[1].simulation.speed`; empty for the whole file.
        at: where that is written.
        message: what is wrong with it.
        hint: what to do about it.
    """

    path: str
    at: Position
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        what = f"{self.path}: " if self.path else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.at.line}:{self.at.column}: {what}{self.message}{hint}"


@dataclass(slots=True)
class Findings:
    """What a check has found so far; `errors` forbid a start, `warnings` do not."""

    errors: list[Problem] = field(default_factory=list[Problem])
    warnings: list[Problem] = field(default_factory=list[Problem])

    def refuse(self, path: str, at: Position, message: str, hint: str | None = None) -> None:
        """Note an error."""
        # The rules name the key, which the path has said already.
        first, _, rest = message.partition(" ")
        named = rest and _key_of(path).endswith(_key_of(first))
        self.errors.append(Problem(path, at, rest if named else message, hint))

    def warn(self, path: str, at: Position, message: str, hint: str | None = None) -> None:
        """Note a warning."""
        self.warnings.append(Problem(path, at, message, hint))

    def checked(self, node: Node, path: str, check: Callable[[object], object]) -> bool:
        """Note what a check says of a value, at the innermost places that it says it of.

        Return whether it says nothing.
        """
        error = refusal(check, node.value)
        if error is None:
            return True
        known = len(self.errors)
        for key, member in node.members.items():
            self._member(node, path, key, member, check)
        for index, item in enumerate(node.items):
            # A list of one item is refused for that item, or for being so short.
            if refusal(check, [item.value]) is not None and len(node.items) > 1:
                self.checked(item, f"{path}[{index}]", lambda value: check([value]))
        if len(self.errors) == known:
            self.refuse(path, node.at, error.message, error.hint)
        return False

    def _member(
        self, node: Node, path: str, key: str, member: Node, check: Callable[[object], object]
    ) -> None:
        below = member_path(path, key)
        error = refusal(check, {key: member.value})
        if error is None:
            return
        if error.code in OF_THE_KEY and key in error.message:
            self.refuse(below, node.keys[key], error.message, error.hint)
            return
        self.checked(member, below, lambda value: check({key: value}))


def _key_of(path: str) -> str:
    """Return the path without the index at its end: a check saw a list of that item alone."""
    return path.rpartition("[")[0] if path.endswith("]") else path


def refusal(check: Callable[[object], object], value: object) -> ConfigurationError | None:
    """Return what a check raises about a value."""
    try:
        check(value)
    except ConfigurationError as error:
        return error
    return None
