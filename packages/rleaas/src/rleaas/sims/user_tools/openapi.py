"""The operations of an OpenAPI description, each a tool."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, cast

from rlcore import ConfigurationError, MissingDependencyError

from rleaas.sims.state import Json
from rleaas.sims.user_tools.endpoint import METHODS, require_url
from rleaas.sims.user_tools.shapes import Object, array_of, object_of, wrong

MOST_OPERATIONS: Final = 64
_DEEPEST: Final = 24
_MOST_PARTS: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation: what the tool is called, what it takes, and where its calls go."""

    name: str
    description: str
    parameters: dict[str, Json]
    method: str
    url: str


def operations(tool: str, spec: object, base: str | None = None) -> list[Operation]:
    """Read the operations of a description, an object or the text of one in JSON or YAML.

    Args:
        tool: the record that has it, for messages.
        spec: the description.
        base: where the paths begin; else its first server's URL.

    Raises:
        ConfigurationError: it is none, or needs what is not offered (references to other
            documents, schemas that contain themselves, header or cookie parameters).
        MissingDependencyError: it is YAML, and nothing that reads it is installed.
    """
    document = _document(tool, spec)
    version = str(document.get("openapi", ""))
    if not version.startswith("3."):
        raise wrong(
            tool, f"spec is an OpenAPI 3 description, not {version or 'one without openapi'}"
        )
    where = base or _server(tool, document)
    reader = _Reader(tool, document)
    found = [
        reader.operation(path, method, where.rstrip("/"), _object(entry), _object(entry)[method])
        for path, entry in _object(document.get("paths")).items()
        for method in _object(entry)
        if method.upper() in METHODS
    ]
    if not 0 < len(found) <= MOST_OPERATIONS:
        raise wrong(tool, f"spec has {len(found)} operations; 1 to {MOST_OPERATIONS} are offered")
    return found


def describes(spec: object) -> bool:
    """Whether this is a description of OpenAPI 3 with operations and the URL of a server."""
    if spec in (None, "", {}):
        return False
    try:
        document = _document("", spec)
        _server("", document)
    except (ConfigurationError, MissingDependencyError):
        return False
    return str(document.get("openapi", "")).startswith("3.") and bool(document.get("paths"))


def base_of(tool: str, spec: object) -> str:
    """The URL of the first server that a description names.

    Raises:
        ConfigurationError: it names none.
    """
    return require_url(tool, _server(tool, _document(tool, spec)))


class _Reader:
    def __init__(self, tool: str, document: Object) -> None:
        self._tool = tool
        self._document = document
        self._parts = 0

    def operation(
        self, path: str, method: str, base: str, entry: Object, given: object
    ) -> Operation:
        said = _object(given)
        properties: dict[str, Json] = {}
        required: list[str] = []
        for name, schema, needed in (*self._listed(entry, said), *self._body(said)):
            if name in properties:
                raise wrong(self._tool, f"spec: {method.upper()} {path} takes {name!r} twice")
            properties[name] = schema
            if needed:
                required.append(name)
        named = said.get("operationId") or f"{method}_{path}"
        return Operation(
            name=snake(str(named)),
            description=str(said.get("description") or said.get("summary") or "")[:2_000],
            parameters={
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": False,
            },
            method=method.upper(),
            url=f"{base}{path}",
        )

    def _listed(self, entry: Object, said: Object) -> Iterator[tuple[str, Json, bool]]:
        both = (*_array(entry.get("parameters")), *_array(said.get("parameters")))
        # The operation's own replace those of its path.
        found = {(one["in"], one["name"]): one for one in map(self._parameter, both)}
        for (place, name), one in found.items():
            needed = bool(one.get("required")) or place == "path"
            if place in ("path", "query"):
                yield name, self._schema(one.get("schema") or {"type": "string"}, 0), needed
            elif needed:
                raise wrong(self._tool, f"spec: the {place} parameter {name!r} is not offered")

    def _parameter(self, given: object) -> Object:
        said = self._resolved(_object(given), 0)
        if not isinstance(said.get("name"), str) or not isinstance(said.get("in"), str):
            raise wrong(self._tool, "spec: a parameter has a name and says what it is in")
        return said

    def _body(self, said: Object) -> Iterator[tuple[str, Json, bool]]:
        body = self._resolved(_object(said.get("requestBody")), 0)
        if not body:
            return
        content = _object(body.get("content"))
        if "application/json" not in content:
            raise wrong(self._tool, "spec: a request body is offered as application/json only")
        given = _object(_object(content["application/json"]).get("schema"))
        schema = _object(self._schema(given, 0))
        properties = _object(schema.get("properties"))
        if not properties:
            raise wrong(self._tool, "spec: a request body is an object with properties")
        needed = _array(schema.get("required"))
        for name, part in properties.items():
            yield name, part, bool(body.get("required")) and name in needed

    def _schema(self, given: Json, depth: int) -> Json:
        """The schema without references, as JSON Schema says it."""
        self._parts += 1
        if depth > _DEEPEST or self._parts > _MOST_PARTS:
            raise wrong(self._tool, "spec: a schema contains itself, or is too large")
        parts, whole = array_of(given), object_of(given)
        if parts is not None:
            return [self._schema(part, depth + 1) for part in parts]
        if whole is None:
            return given
        said = dict(self._resolved(whole, depth))
        nullable = said.pop("nullable", False)
        made = {key: self._schema(part, depth + 1) for key, part in said.items()}
        for limit, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            # OpenAPI 3.0 says it with a boolean beside the bound.
            if isinstance(made.get(limit), bool):
                exclusive = made.pop(limit)
                if exclusive and bound in made:
                    made[limit] = made.pop(bound)
        if nullable and isinstance(made.get("type"), str):
            made["type"] = [made["type"], "null"]
        return made

    def _resolved(self, given: Object, depth: int) -> Object:
        reference = given.get("$ref")
        if reference is None:
            return given
        if depth > _DEEPEST or not isinstance(reference, str) or not reference.startswith("#/"):
            raise wrong(self._tool, f"spec: the reference {reference!r} is not offered")
        found: Json = self._document
        for part in reference[2:].split("/"):
            found = _object(found).get(part.replace("~1", "/").replace("~0", "~"))
        whole = object_of(found)
        if whole is None:
            raise wrong(self._tool, f"spec: the reference {reference!r} leads nowhere")
        return self._resolved(whole, depth + 1)


def snake(name: str) -> str:
    """A name in snake_case."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_") or "operation"


def _document(tool: str, spec: object) -> Object:
    if isinstance(spec, str):
        spec = _parsed(tool, spec)
    document = object_of(spec)
    if document is None:
        raise wrong(tool, "spec is an OpenAPI description: an object, or its text")
    return document


def _parsed(tool: str, text: str) -> object:
    try:
        return cast("object", json.loads(text))
    except (ValueError, RecursionError):
        pass  # it may be YAML
    try:
        import yaml
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"tool {tool!r}: its spec is no JSON, and reading YAML needs {error.name!r}",
            hint="Install it: pip install 'rleaas[cli]', or give the spec as JSON",
        ) from error
    try:
        return cast("object", yaml.safe_load(text))
    except (yaml.YAMLError, RecursionError) as error:
        raise wrong(tool, f"spec is neither JSON nor YAML: {error}") from error


def _server(tool: str, document: Object) -> str:
    servers = _array(document.get("servers"))
    url = _object(servers[0]).get("url") if servers else None
    if not isinstance(url, str) or "://" not in url:
        raise ConfigurationError(
            f"tool {tool!r}: spec names no server with a whole URL",
            code="invalid_tool",
            hint="Give endpoint.url beside it",
        )
    return url


def _object(value: object) -> Object:
    return object_of(value) or {}


def _array(value: object) -> Sequence[Json]:
    return array_of(value) or ()
