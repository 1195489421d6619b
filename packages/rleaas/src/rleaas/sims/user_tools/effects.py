"""A tool whose conditions and effects are declared: expressions over the state of the world."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rlcore import ExpressionError

from rleaas.sims.state import Json, State
from rleaas.sims.tool import Refused
from rleaas.sims.user_tools.shapes import Object, array_of, object_of, wrong
from rleaas.verify import Expression
from rleaas.verify.values import data

MOST: Final = 50
"""Preconditions, effects or returned values that a tool may declare."""
MOST_RECORDS: Final = 10_000
LARGEST_VALUE: Final = 20_000
_WORD: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_EXPRESSION: Final = "expression"

Names = dict[str, Json]


@dataclass(frozen=True, slots=True)
class Value:
    """A literal, or an expression that is worked out at each call."""

    literal: Json = None
    expression: Expression | None = None

    def worked_out(self, tool: str, names: Names) -> Json:
        """What it is now.

        Raises:
            Refused: the expression has no value, or an unreasonable one.
        """
        if self.expression is None:
            return self.literal
        try:
            value = data(self.expression.evaluate(names))
        except (ExpressionError, TypeError) as error:
            raise Refused("effect_failed", f"{tool}: {error}") from error
        if len(repr(value)) > LARGEST_VALUE:
            raise Refused("effect_failed", f"{tool}: {self.expression.text!r} gives too much")
        return value


@dataclass(frozen=True, slots=True)
class Precondition:
    """What has to hold before a call; else it is refused with these words."""

    condition: Expression
    code: str
    message: str

    def require(self, tool: str, names: Names) -> None:
        """Refuse the call if the condition does not hold.

        Raises:
            Refused: it does not.
        """
        try:
            holds = bool(self.condition.evaluate(names))
        except ExpressionError as error:
            raise Refused(self.code, f"{self.message} ({error.reason})") from error
        if not holds:
            raise Refused(self.code, self.message)


@dataclass(frozen=True, slots=True)
class Effect:
    """One fact that is set, or one record whose fields are."""

    fact: str | None
    value: Value
    table: str = ""
    key: Value = Value()
    fields: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class Declared:
    """What a tool requires, changes and returns.

    Expressions find the facts and the case by name and as `state`, the arguments as `arguments`,
    and what the endpoint answered as `result`.
    """

    preconditions: tuple[Precondition, ...] = ()
    effects: tuple[Effect, ...] = ()
    returns: tuple[tuple[str, Value], ...] = ()

    def require(self, tool: str, state: State, arguments: Mapping[str, Json]) -> None:
        """Refuse a call whose preconditions do not hold.

        Raises:
            Refused: one of them does not.
        """
        if self.preconditions:
            names = _names(state, arguments, {})
            for one in self.preconditions:
                one.require(tool, names)

    def apply(
        self, tool: str, state: State, arguments: Mapping[str, Json], result: dict[str, Json]
    ) -> dict[str, Json]:
        """Make all effects true, or none; returns what the call returns.

        Raises:
            Refused: one of them cannot be worked out.
        """
        if not self.effects and not self.returns:
            return result
        names = _names(state, arguments, result)
        facts: dict[str, Json] = {}
        records: list[tuple[str, str, dict[str, Json]]] = []
        for effect in self.effects:
            if effect.fact is not None:
                facts[effect.fact] = effect.value.worked_out(tool, names)
            else:
                records.append(_record(tool, state, effect, names))
        returned = {key: value.worked_out(tool, names) for key, value in self.returns}
        state.facts.update(facts)
        for table, key, fields in records:
            state.tables.setdefault(table, {}).setdefault(key, {"id": key}).update(fields)
        return returned if self.returns else {**result, **facts}


def _record(
    tool: str, state: State, effect: Effect, names: Names
) -> tuple[str, str, dict[str, Json]]:
    key = effect.key.worked_out(tool, names)
    if isinstance(key, bool) or not isinstance(key, str | int) or not 0 < len(str(key)) <= 200:
        raise Refused("effect_failed", f"{tool}: the id of a record of {effect.table} is {key!r}")
    rows = state.tables.get(effect.table, {})
    if str(key) not in rows and len(rows) >= MOST_RECORDS:
        raise Refused("effect_failed", f"{tool}: {effect.table} has {MOST_RECORDS} records already")
    fields = {name: value.worked_out(tool, names) for name, value in effect.fields}
    return effect.table, str(key), fields


def _names(state: State, arguments: Mapping[str, Json], result: Mapping[str, Json]) -> Names:
    known = state.to_json()
    return {**known, "state": known, "arguments": dict(arguments), "result": dict(result)}


def read_declared(tool: str, record: Mapping[str, Json]) -> Declared:
    """What a tool's record declares in `preconditions`, `effects` and `returns`.

    Raises:
        ConfigurationError: a part of it is wrong.
        ExpressionError: an expression cannot be read; a caret shows where.
    """
    returns = object_of(record.get("returns") or {})
    if returns is None:
        raise wrong(tool, "returns is an object of values")
    return Declared(
        tuple(_precondition(tool, one) for one in _listed(tool, record, "preconditions")),
        tuple(_effect(tool, one) for one in _listed(tool, record, "effects")),
        _values(tool, returns, "returns"),
    )


def _listed(tool: str, record: Mapping[str, Json], key: str) -> Sequence[Json]:
    given = array_of(record.get(key) or ())
    if given is None or len(given) > MOST:
        raise wrong(tool, f"{key} is a list of at most {MOST}")
    return given


def _precondition(tool: str, given: Json) -> Precondition:
    if isinstance(given, str):
        return Precondition(Expression(given), "precondition_failed", f"{tool}: not {given}")
    said = _object(tool, given, "a precondition", ("condition", "code", "message"))
    condition = said.get("condition")
    code, message = said.get("code"), said.get("message")
    if not isinstance(condition, str):
        raise wrong(tool, "a precondition is a text, or an object with a condition")
    if code is not None and not _is_word(code):
        raise wrong(tool, f"the code of a precondition is a word in snake_case, not {code!r}")
    if message is not None and not isinstance(message, str):
        raise wrong(tool, "the message of a precondition is a text")
    return Precondition(
        Expression(condition), code or "precondition_failed", message or f"{tool}: not {condition}"
    )


def _effect(tool: str, given: Json) -> Effect:
    said = _object(tool, given, "an effect", ("fact", "value", "record"))
    fact, record = said.get("fact"), said.get("record")
    if (fact is None) == (record is None):
        raise wrong(tool, "an effect has either a fact with its value, or a record")
    if fact is not None:
        if not _is_word(fact):
            raise wrong(tool, f"a fact is a word in snake_case, not {fact!r}")
        if "value" not in said:
            raise wrong(tool, f"the effect on {fact!r} has no value")
        return Effect(fact, _value(tool, said["value"]))
    parts = _object(tool, record, "an effect's record", ("table", "id", "fields"))
    table, fields = parts.get("table"), object_of(parts.get("fields"))
    if not _is_word(table) or "id" not in parts or fields is None:
        raise wrong(tool, "an effect's record has a table in snake_case, an id, and fields")
    named = _values(tool, fields, "fields")
    return Effect(None, Value(), str(table), _value(tool, parts["id"]), named)


def _values(tool: str, given: Mapping[str, Json], what: str) -> tuple[tuple[str, Value], ...]:
    if len(given) > MOST:
        raise wrong(tool, f"{what} has more than {MOST} values")
    return tuple((str(name), _value(tool, value)) for name, value in given.items())


def _value(tool: str, given: Json) -> Value:
    said = object_of(given)
    if said is not None and _EXPRESSION in said:
        text = said[_EXPRESSION]
        if not isinstance(text, str) or len(said) > 1:
            raise wrong(tool, 'a value that is worked out is {"expression": "its text"}')
        return Value(expression=Expression(text))
    return Value(given)


def _object(tool: str, given: Json, what: str, keys: Sequence[str]) -> Object:
    said = object_of(given)
    if said is None:
        raise wrong(tool, f"{what} is an object with {', '.join(keys)}")
    unknown = sorted(set(said) - set(keys))
    if unknown:
        raise wrong(tool, f"{what} has no {unknown[0]!r}; it has {', '.join(keys)}")
    return said


def _is_word(text: object) -> bool:
    return isinstance(text, str) and _WORD.fullmatch(text) is not None
