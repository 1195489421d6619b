"""Reads an expression.

    choice     = or [ "if" or "else" choice ]
    or         = and { "or" and }
    and        = not { "and" not }
    not        = "not" not | comparison
    comparison = sum { ("==" | "!=" | "<" | "<=" | ">" | ">=" | ["not"] "in" | "is" ["not"]) sum }
    sum        = product { ("+" | "-") product }
    product    = signed { ("*" | "/" | "//" | "%") signed }
    signed     = ("-" | "+") signed | power
    power      = part [ "**" signed ]
    part       = atom { "." name | "[" choice "]" | "[" [choice] ":" [choice] "]" }
    atom       = number | text | "true" | "false" | "none" | "null" | name
               | function "(" [ choice { "," choice } ] ")" | "(" choice { "," choice } ")"
               | "[" [ choice { "," choice } ] "]"

Words of the language may be written in capitals. Ranks and chains are those of Python.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass

from rlcore import ExpressionError

from rleaas.verify import syntax
from rleaas.verify.functions import FUNCTIONS
from rleaas.verify.syntax import Node
from rleaas.verify.tokens import Kind, Token, tokens

MAX_DEPTH = 24
"""How deep parts of an expression lie in one another."""
MAX_NODES = 1_000
"""Parts of one expression."""

_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
Link = tuple[str, int, Node]


@dataclass(frozen=True, slots=True)
class Parsed:
    """An expression's parts, its variables, and the names behind a dot in it."""

    node: Node
    names: frozenset[str]
    fields: frozenset[str]


def parse(expression: str) -> Parsed:
    """Read an expression.

    Raises:
        ExpressionError: it is none of the language, with a caret under the place.
    """
    if not expression.strip():
        raise ExpressionError("the expression is empty", hint="Say what has to hold")
    try:
        parser = _Parser(expression)
        return Parsed(parser.whole(), frozenset(parser.names), frozenset(parser.fields))
    except RecursionError as error:
        # Whoever calls us may have used up the stack nearly to its end.
        raise ExpressionError("the expression is nested too deep", expression=expression) from error


class _Parser:
    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._tokens = tokens(expression)
        self._at = 0
        self._depth = 0
        self._nodes = 0
        self.names: set[str] = set()
        self.fields: set[str] = set()

    def whole(self) -> Node:
        node = self._choice()
        if self._next.kind is not Kind.END:
            raise self._unexpected("an operator or the end")
        return node

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self, *texts: str) -> Token | None:
        """The next token, if it is one of these signs or keywords."""
        token = self._next
        if token.kind in (Kind.SIGN, Kind.KEYWORD) and token.text in texts:
            self._at += 1
            return token
        return None

    def _require(self, text: str, *, after: str) -> Token:
        token = self._take(text)
        if token is None:
            raise self._unexpected(f"{text!r} {after}")
        return token

    def _deeper(self, read: Callable[[], Node]) -> Node:
        self._enter()
        node = read()
        self._depth -= 1
        return node

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._refused(f"parts lie in one another more than {MAX_DEPTH} deep")

    def _counted(self, node: Node) -> Node:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise self._refused(f"an expression has at most {MAX_NODES} parts")
        return node

    def _choice(self) -> Node:
        yes = self._junction("or")
        question = self._take("if")
        if question is None:
            return yes
        condition = self._junction("or")
        self._require("else", after="to go with this 'if'")
        no = self._deeper(self._choice)
        return self._counted(syntax.Choice(question.position, condition, yes, no))

    def _junction(self, operator: str) -> Node:
        def read() -> Node:
            return self._junction("and") if operator == "or" else self._negation()

        first = read()
        if self._next.kind is not Kind.KEYWORD or self._next.text != operator:
            return first
        position = self._next.position
        terms = [first]
        while self._take(operator):
            terms.append(read())
        return self._counted(syntax.Junction(position, operator, terms))

    def _negation(self) -> Node:
        token = self._take("not")
        if token is None:
            return self._comparison()
        return self._counted(syntax.Negation(token.position, self._deeper(self._negation)))

    def _comparison(self) -> Node:
        first = self._chain(_SUM)
        links: list[Link] = []
        while (token := self._comparing()) is not None:
            links.append((token.text, token.position, self._counted(self._chain(_SUM))))
        if not links:
            return first
        return self._counted(syntax.Comparison(links[0][1], first, links))

    def _comparing(self) -> Token | None:
        token = self._take(*_COMPARISONS, "in")
        if token is not None:
            return token
        token = self._take("is")
        if token is not None:
            # Values have no identity here; what people mean by it is whether they are equal.
            return Token(token.kind, "!=" if self._take("not") else "==", token.position)
        following = self._tokens[min(self._at + 1, len(self._tokens) - 1)]
        if following.text == "in" and following.kind is Kind.KEYWORD:
            token = self._take("not")
            if token is not None:
                self._at += 1
                return Token(token.kind, "not in", token.position)
        return None

    def _chain(self, operators: tuple[str, ...]) -> Node:
        def read() -> Node:
            return self._chain(_PRODUCT) if operators is _SUM else self._signed()

        first = read()
        links: list[Link] = []
        while (token := self._take(*operators)) is not None:
            links.append((token.text, token.position, self._counted(read())))
        if not links:
            return first
        return self._counted(syntax.Sum(links[0][1], first, links))

    def _signed(self) -> Node:
        token = self._take("-", "+")
        if token is None:
            return self._power()
        of = self._deeper(self._signed)
        return self._counted(syntax.Signed(token.position, token.text, of))

    def _power(self) -> Node:
        base = self._part()
        token = self._take("**")
        if token is None:
            return base
        exponent = self._deeper(self._signed)
        return self._counted(syntax.Power(token.position, base, exponent))

    def _part(self) -> Node:
        node = self._atom()
        depth = self._depth
        while True:
            if (token := self._take(".")) is not None:
                node = syntax.Field(token.position, node, self._field_name())
            elif (token := self._take("[")) is not None:
                self._enter()
                node = self._item(node, token.position)
            else:
                break
            self._counted(node)
            # Each of these wraps what was before it.
            self._enter()
        self._depth = depth
        return node

    def _field_name(self) -> str:
        token = self._next
        if token.kind not in (Kind.NAME, Kind.KEYWORD):
            raise self._unexpected("a name after '.'")
        name = self._expression[token.position : token.position + len(token.text)]
        if name.startswith("_"):
            raise self._private(name)
        self._at += 1
        self.fields.add(name)
        return name

    def _item(self, of: Node, position: int) -> Node:
        if self._take(":"):
            return self._slice(of, position, None)
        key = self._choice()
        if self._take(":"):
            return self._slice(of, position, key)
        self._require("]", after="after the index")
        return syntax.Item(position, of, key)

    def _slice(self, of: Node, position: int, begin: Node | None) -> Node:
        if self._take("]"):
            return syntax.Slice(position, of, begin, None)
        end = self._choice()
        self._require("]", after="after the slice")
        return syntax.Slice(position, of, begin, end)

    def _atom(self) -> Node:
        token = self._next
        if token.kind in (Kind.NUMBER, Kind.STRING):
            self._at += 1
            return self._counted(syntax.Literal(token.position, token.value))
        if token.kind is Kind.KEYWORD and token.text in _CONSTANTS:
            self._at += 1
            return self._counted(syntax.Literal(token.position, _CONSTANTS[token.text]))
        if token.kind is Kind.NAME:
            return self._counted(self._name(token))
        if self._take("("):
            self._enter()
            node = self._grouped(token)
            self._depth -= 1
            return node
        if self._take("["):
            items = self._list("]")
            return self._counted(syntax.Items(token.position, items))
        raise self._unexpected("a value")

    def _name(self, token: Token) -> Node:
        if token.text.startswith("_"):
            raise self._private(token.text)
        self._at += 1
        if not self._take("("):
            self.names.add(token.text)
            return syntax.Name(token.position, token.text)
        function = FUNCTIONS.get(token.text)
        if function is None:
            near = difflib.get_close_matches(token.text, FUNCTIONS, n=1)
            raise ExpressionError(
                f"there is no function {token.text!r}",
                expression=self._expression,
                position=token.position,
                hint=f"Did you mean {near[0]!r}?"
                if near
                else f"There are {', '.join(sorted(FUNCTIONS))}",
            )
        arguments = self._list(")")
        if not function.least <= len(arguments) <= function.most:
            raise ExpressionError(
                f"{function.shown} takes {function.takes}, not {len(arguments)}",
                expression=self._expression,
                position=token.position,
            )
        return syntax.Call(token.position, token.text, arguments)

    def _grouped(self, opening: Token) -> Node:
        first = self._choice()
        if self._take(")"):
            return first
        self._require(",", after="or ')'")
        items = [first, *self._list(")")]
        return self._counted(syntax.Items(opening.position, items))

    def _list(self, closing: str) -> list[Node]:
        items: list[Node] = []
        while not self._take(closing):
            items.append(self._deeper(self._choice))
            if not self._take(","):
                self._require(closing, after="or ','")
                break
        return items

    def _unexpected(self, wanted: str) -> ExpressionError:
        token = self._next
        found = token.text if token.kind is Kind.END else repr(token.text[:40])
        return self._refused(f"expected {wanted}, found {found}")

    def _private(self, name: str) -> ExpressionError:
        return self._refused(f"{name!r} cannot be read: names with a leading _ are private")

    def _refused(self, reason: str) -> ExpressionError:
        return ExpressionError(reason, expression=self._expression, position=self._next.position)


_SUM = ("+", "-")
_PRODUCT = ("*", "/", "//", "%")
_CONSTANTS: dict[str, object] = {"true": True, "false": False, "none": None, "null": None}
