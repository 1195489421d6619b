"""Expressions: read once, worked out often, and never more than they say."""

from __future__ import annotations

from collections.abc import Mapping

from rlcore import ExpressionError

from rleaas.verify.closures import Frame, compiled
from rleaas.verify.parser import parse
from rleaas.verify.values import Fault, Value
from rleaas.verify.work import Work


class Expression:
    """A condition or a formula over named values: numbers, texts, lists, objects.

    It can do what its text says and nothing else: no attribute of a Python object can be reached,
    no function but those of `FUNCTIONS` called, and how much it may look at is bounded.

    Attributes:
        text: what was written.
        node: what it consists of.
        names: the variables in it.
        fields: the names behind a dot in it.

    Raises:
        ExpressionError: the text is no expression; a caret shows where.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        parsed = parse(text)
        try:
            self._run = compiled(parsed.node)
        except Fault as fault:
            raise self._error(fault, "invalid_expression") from None
        self.node = parsed.node
        self.names = parsed.names
        self.fields = parsed.fields

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def __reduce__(self) -> tuple[type[Expression], tuple[str]]:
        return Expression, (self.text,)

    def evaluate(self, names: Mapping[str, Value], within: Work | None = None) -> Value:
        """The value for these variables, which are plain data (see `values.data`).

        Args:
            names: the variables.
            within: an account of work that several evaluations share.

        Raises:
            ExpressionError: it has none: a variable is not there, an operator does not fit its
                values, a limit was reached. Its code is `expression_failed`.
        """
        try:
            return self._run(Frame(names, within))
        except Fault as fault:
            raise self._error(fault, "expression_failed") from None
        except (RecursionError, MemoryError) as error:
            raise ExpressionError(
                "the values are nested too deep or too large to compare",
                expression=self.text,
                code="expression_failed",
            ) from error

    def _error(self, fault: Fault, code: str) -> ExpressionError:
        return ExpressionError(
            fault.reason, expression=self.text, position=fault.position, code=code
        )
