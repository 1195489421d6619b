"""The tools that users registered, made of their records."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import fastjsonschema

from rleaas.sims.state import Json, State
from rleaas.sims.tool import Category, Tool
from rleaas.sims.user_tools.effects import Declared, read_declared
from rleaas.sims.user_tools.endpoint import Endpoint, read_endpoint
from rleaas.sims.user_tools.openapi import base_of, describes, operations
from rleaas.sims.user_tools.schema import checked_schema, example
from rleaas.sims.user_tools.shapes import array_of, object_of, wrong

BEHAVIOUR: Final = ("endpoint", "effects", "preconditions", "returns", "ends_episode")
"""The keys of a record that say what a tool does, beside its `spec`."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_CATEGORIES: Final[Mapping[str, Category]] = {
    "read": "read",
    "write": "write",
    "approval": "approval",
    "search": "search",
    "notify": "notify",
    "system": "system",
}
Record = Mapping[str, Json]


def acts(record: Record) -> bool:
    """Whether a record says what its tool does; one that does not is only listed.

    A description alone says it when it is of OpenAPI, with operations and the URL of a server.
    """
    if any(record.get(key) not in (None, [], {}, False) for key in BEHAVIOUR):
        return True
    return describes(record.get("spec"))


def read_tools(records: Sequence[Record]) -> tuple[Tool, ...]:
    """The tools of these records; those that say nothing of what they do are left out.

    A record has `name`, `description`, `parameters` (a JSON schema) and `category`, and at least
    one of: `endpoint` (see `Endpoint`), `preconditions`, `effects` and `returns` (see `Declared`),
    or `spec`, an OpenAPI description whose operations are tools each. A record with effects and an
    endpoint makes its effects true when the endpoint answered. `suggested` has the arguments of
    the discrete face; texts with `$` before them are keys of the case.

    Raises:
        ConfigurationError: a record is wrong, or two tools have one name.
        ExpressionError: an expression of one cannot be read.
    """
    made = [tool for record in records if acts(record) for tool in tools_of(record)]
    names = [tool.name for tool in made]
    for name in names:
        if names.count(name) > 1:
            raise wrong(name, "two tools have this name")
    return tuple(made)


def tools_of(record: Record) -> list[Tool]:
    """The tools of one record: one, or one for each operation of its description.

    Raises:
        ConfigurationError: the record is wrong.
        ExpressionError: an expression of it cannot be read.
    """
    name = str(record.get("name") or "")
    declared = read_declared(name, record)
    given = record.get("endpoint")
    endpoint = None if given is None else read_endpoint(name, given)
    spec = record.get("spec")
    if spec in (None, "", {}):
        return [_tool(record, declared, endpoint)]
    made: list[Tool] = []
    for one in operations(name, spec, None if endpoint is None else endpoint.url):
        described = {
            "description": one.description or record.get("description"),
            "parameters": one.parameters,
            "name": one.name,
        }
        place = {"url": one.url, "method": one.method}
        own = read_endpoint(name, place)
        if endpoint is not None:
            own = replace(endpoint, tool=one.name, url=own.url, method=own.method)
        else:
            own = replace(own, tool=one.name)
        made.append(_tool({**record, **described}, declared, own))
    return made


def endpoints_of(record: Record) -> list[str]:
    """The URLs that calls of a record's tools go to, without arguments; none asks nobody.

    Raises:
        ConfigurationError: the record is wrong.
    """
    name = str(record.get("name") or "")
    given = record.get("endpoint")
    if given is not None:
        return [read_endpoint(name, given).url]
    spec = record.get("spec")
    return [base_of(name, spec)] if describes(spec) else []


def _tool(record: Record, declared: Declared, endpoint: Endpoint | None) -> Tool:
    name = str(record.get("name") or "")
    if not _NAME.fullmatch(name):
        raise wrong(
            name, "its name has letters, digits, '_', '.' and '-' only, and is 1 to 64 long"
        )
    schema = checked_schema(name, record.get("parameters"))
    ends = record.get("ends_episode")
    if ends is not None and not isinstance(ends, bool):
        raise wrong(name, "ends_episode is true or false")
    tool = Tool(
        name=name,
        description=str(record.get("description") or ""),
        parameters=schema,
        category=_category(record),
        run=_run(name, declared, endpoint),
        ends_episode=bool(ends),
        compliance_tags=tuple(map(str, array_of(record.get("compliance_tags")) or ())),
        suggest=_suggest(name, schema, record.get("suggested")),
    )
    _require_usable(tool)
    return tool


def _run(
    name: str, declared: Declared, endpoint: Endpoint | None
) -> Callable[[State, Mapping[str, Json]], Mapping[str, Json]]:
    def run(state: State, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        declared.require(name, state, arguments)
        result = {} if endpoint is None else endpoint.call(arguments)
        return declared.apply(name, state, arguments, result)

    return run


def _category(record: Record) -> Category:
    if record.get("authorization_required") is True:
        return "approval"
    for key in ("category", "type"):
        value = str(record.get(key) or "").lower()
        if value in _CATEGORIES:
            return _CATEGORIES[value]
    return "system"


def _require_usable(tool: Tool) -> None:
    try:
        tool.checker()
    except fastjsonschema.JsonSchemaDefinitionException as error:
        raise wrong(tool.name, f"parameters is no JSON schema: {error}") from error


def _suggest(
    name: str, schema: Mapping[str, Json], given: Json
) -> Callable[[State], Mapping[str, Json]]:
    said = object_of(given)
    if given is not None and said is None:
        raise wrong(name, "suggested is an object of arguments")
    properties = object_of(schema.get("properties")) or {}
    required = array_of(schema.get("required")) or ()

    def suggest(state: State) -> Mapping[str, Json]:
        if said is not None:
            return {key: _from_case(value, state) for key, value in said.items()}
        return {
            key: state.case[key] if key in state.case else example(properties.get(key))
            for key in required
        }

    return suggest


def _from_case(value: Json, state: State) -> Json:
    if isinstance(value, str) and value.startswith("$"):
        return state.case.get(value[1:], value)
    return value
