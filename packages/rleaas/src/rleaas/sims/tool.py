"""A tool of a world: what it takes, what it does, and how a call of it is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, cast

import fastjsonschema

from rleaas.sims.state import Json, State

Category = Literal["read", "write", "approval", "search", "notify", "system"]

INVALID_ARGUMENTS = "invalid_arguments"
UNKNOWN_TOOL = "unknown_tool"
TOOL_NOT_AVAILABLE = "tool_not_available"
_PLAIN = frozenset((str, int, bool, type(None)))


class Refused(Exception):
    """A tool does not do what it was asked for; the state is as it was.

    Attributes:
        code: a stable word for the reason.
        message: what is missing, on which record, and what to do first.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    def to_json(self) -> dict[str, str]:
        """What the agent is told."""
        return {"code": self.code, "message": self.message}


def nothing(state: State) -> Mapping[str, Json]:
    """The suggested arguments of a tool that takes none."""
    return {}


def always(state: State) -> bool:
    """A tool that ends episodes ends each."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One thing that an agent can do.

    Attributes:
        name: in snake_case, unique in its vertical.
        description: for the agent.
        parameters: the JSON schema of its arguments, an object without other keys.
        category: what kind of effect it has.
        run: does it, and returns the result; raises `Refused` before it changed anything.
        ends_episode: whether the task is over when it ran.
        ends_when: of a tool that ends episodes, whether it does after this call: not before
            the last case of several, say.
        compliance_tags: what it is a control for, such as AML.
        suggest: valid arguments for the case in focus: those of the discrete face.
    """

    name: str
    description: str
    parameters: Mapping[str, Json]
    category: Category
    run: Callable[[State, Mapping[str, Json]], Mapping[str, Json]]
    ends_episode: bool = False
    ends_when: Callable[[State], bool] = always
    compliance_tags: tuple[str, ...] = ()
    suggest: Callable[[State], Mapping[str, Json]] = nothing

    def card(self) -> dict[str, Json]:
        """The tool as a language model is told of it."""
        return {
            "name": self.name,
            "description": self.description,
            "parameters": dict(self.parameters),
        }

    def checker(self) -> Callable[[object], Json]:
        """What refuses arguments that break the schema; compiled once a process.

        It raises `Refused` with the code `invalid_arguments` and the path of what is wrong.
        """
        return _checker(self.name, json.dumps(self.parameters))


def arguments_schema(**properties: Mapping[str, Json]) -> dict[str, Json]:
    """The schema of an object with exactly these properties, all required.

    A property with `"optional": True` may be left out.
    """
    kept = {
        name: {key: part for key, part in schema.items() if key != "optional"}
        for name, schema in properties.items()
    }
    return {
        "type": "object",
        "properties": kept,
        "required": [name for name, schema in properties.items() if not schema.get("optional")],
        "additionalProperties": False,
    }


@lru_cache(maxsize=1_000)
def _checker(tool: str, schema: str) -> Callable[[object], Json]:
    # Defaults would be written into the caller's arguments.
    validate = fastjsonschema.compile(json.loads(schema), use_default=False)

    def check(arguments: object) -> Json:
        try:
            validate(arguments)
        except fastjsonschema.JsonSchemaValueException as error:
            path = ".".join(["arguments", *map(str, error.path[1:])])
            said = error.message.removeprefix(error.name or "").strip()
            raise Refused(INVALID_ARGUMENTS, f"{tool}: {path} {said}") from error
        for name, value in cast("Mapping[str, object]", arguments).items():
            if type(value) not in _PLAIN:
                _require_finite(tool, f"arguments.{name}", value)
        return arguments

    return check


def _require_finite(tool: str, path: str, value: object) -> None:
    if isinstance(value, float):
        # JSON has no such numbers, and every comparison of a limit with NaN is false.
        if not math.isfinite(value):
            raise Refused(INVALID_ARGUMENTS, f"{tool}: {path} must be a finite number")
    elif isinstance(value, Mapping):
        for key, part in cast("Mapping[str, object]", value).items():
            _require_finite(tool, f"{path}.{key}", part)
    elif isinstance(value, list):
        for place, part in enumerate(cast("Sequence[object]", value)):
            _require_finite(tool, f"{path}.{place}", part)
