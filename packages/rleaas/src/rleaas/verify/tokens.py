"""The words of the expression language."""

from __future__ import annotations

import enum
import math
import re
from dataclasses import dataclass

from rlcore import ExpressionError

MAX_LENGTH = 4_000
"""Characters of one expression."""

KEYWORDS = frozenset(
    ("and", "or", "not", "in", "if", "else", "is", "true", "false", "none", "null")
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
_PATTERN = re.compile(
    r"""
    (?P<blank>[ \t\r\n\f]+)
  | (?P<number>(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+)?)
  | (?P<name>[^\W0-9]\w*)
  | (?P<string>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
  | (?P<sign>\*\*|//|==|!=|<=|>=|[-+*/%<>()\[\],.:])
    """,
    re.VERBOSE,
)


class Kind(enum.Enum):
    """What a token is."""

    NUMBER = "number"
    STRING = "string"
    NAME = "name"
    KEYWORD = "keyword"
    SIGN = "sign"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """A word; `text` of a keyword is in lower case, `value` is that of a literal."""

    kind: Kind
    text: str
    position: int
    value: object = None


def tokens(expression: str) -> list[Token]:
    """The words of an expression, and an end.

    Raises:
        ExpressionError: it is too long, or has a character that no word begins with.
    """
    if len(expression) > MAX_LENGTH:
        raise ExpressionError(
            f"an expression has at most {MAX_LENGTH} characters, this one has {len(expression)}"
        )
    found: list[Token] = []
    at = 0
    while at < len(expression):
        match = _PATTERN.match(expression, at)
        if match is None:
            raise _no_word(expression, at)
        if match.lastgroup != "blank":
            found.append(_token(expression, match))
        at = match.end()
    found.append(Token(Kind.END, "the end", len(expression)))
    return found


def _token(expression: str, match: re.Match[str]) -> Token:
    text, at = match.group(), match.start()
    match match.lastgroup:
        case "number":
            return Token(Kind.NUMBER, text, at, _number(expression, text, at))
        case "string":
            return Token(Kind.STRING, text, at, _text(expression, text, at))
        case "name" if text.lower() in KEYWORDS:
            return Token(Kind.KEYWORD, text.lower(), at)
        case "name":
            return Token(Kind.NAME, text, at)
        case _:
            return Token(Kind.SIGN, text, at)


def _number(expression: str, text: str, at: int) -> int | float:
    try:
        number = int(text) if text.replace("_", "").isdigit() else float(text)
    except ValueError:
        raise ExpressionError(
            f"{text[:40]!r} is not a number", expression=expression, position=at
        ) from None
    if isinstance(number, float) and math.isinf(number):
        raise ExpressionError(f"{text[:40]} is not finite", expression=expression, position=at)
    return number


def _text(expression: str, text: str, at: int) -> str:
    if "\\" not in text:
        return text[1:-1]
    parts: list[str] = []
    index = 1
    while index < len(text) - 1:
        letter = text[index]
        if letter == "\\":
            index += 1
            if text[index] not in _ESCAPES:
                raise ExpressionError(
                    f"\\{text[index]} is no escape",
                    expression=expression,
                    position=at + index - 1,
                    hint="There are \\n \\t \\r \\\\ \\' and \\\"",
                )
            letter = _ESCAPES[text[index]]
        parts.append(letter)
        index += 1
    return "".join(parts)


def _no_word(expression: str, at: int) -> ExpressionError:
    letter = expression[at]
    hint = None
    if letter in "'\"":
        reason, hint = "this text has no closing quote", "Text ends on the line where it begins"
    elif letter == "=":
        reason, hint = "'=' compares nothing here", "To compare, write =="
    elif letter in "&|!":
        reason, hint = f"{letter!r} is no operator here", "Write and, or, not, !="
    else:
        reason = f"{letter!r} has no meaning here"
    return ExpressionError(reason, expression=expression, position=at, hint=hint)
