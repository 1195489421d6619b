"""The JSON schemas that users may give their tools: plain ones, without references or code paths.

What checks arguments compiles a schema into Python, so nothing that a user writes gets there but
keywords and values of these kinds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from rleaas.sims.state import Json
from rleaas.sims.user_tools.shapes import array_of, object_of, wrong

_TYPES: Final = ("string", "integer", "number", "boolean", "array", "object", "null")
_NAME: Final = re.compile(r"[A-Za-z_$@][A-Za-z0-9_.$@-]{0,99}")
_DEEPEST: Final = 24
_MOST_PARTS: Final = 5_000
_LONGEST: Final = 2_000


def checked_schema(tool: str, given: Json) -> dict[str, Json]:
    """The schema of an object of arguments, with what is known of each keyword and no more.

    Raises:
        ConfigurationError: it is another's, or has a keyword that is not offered.
    """
    if given in (None, {}):
        return {"type": "object", "properties": {}, "additionalProperties": False}
    said = object_of(given)
    if said is None:
        raise wrong(tool, "parameters is a JSON schema")
    if said.get("type") not in (None, "object"):
        raise wrong(tool, "parameters is the schema of an object")
    return {"type": "object", **_Check(tool).schema("parameters", said, 0)}


class _Check:
    def __init__(self, tool: str) -> None:
        self._tool = tool
        self._parts = 0

    def schema(self, path: str, given: Json, depth: int) -> dict[str, Json]:
        """The schema at a path."""
        self._parts += 1
        if depth > _DEEPEST or self._parts > _MOST_PARTS:
            raise wrong(self._tool, f"{path}: the schema is too deep or too large")
        said = object_of(given)
        if said is None:
            raise wrong(self._tool, f"{path} is a schema, not {given!r:.80}")
        made: dict[str, Json] = {}
        for keyword, value in said.items():
            if keyword in _SHOWN and isinstance(value, str):
                made[keyword] = value[:_LONGEST]
            elif keyword not in _SAYS_NOTHING and not str(keyword).startswith("x-"):
                made[keyword] = self._part(f"{path}.{keyword}", keyword, value, depth)
        return made

    def _part(self, path: str, keyword: str, value: Json, depth: int) -> Json:
        if keyword == "properties":
            return self._properties(path, value, depth)
        if keyword in ("items", "not", "contains"):
            return self.schema(path, value, depth + 1)
        if keyword == "additionalProperties":
            return value if isinstance(value, bool) else self.schema(path, value, depth + 1)
        if keyword in ("anyOf", "oneOf", "allOf"):
            return self._several(path, value, depth)
        fits = _FITS.get(keyword)
        if fits is None:
            raise wrong(self._tool, f"{path}: the keyword {keyword!r:.80} is not offered")
        if not fits(value):
            raise wrong(self._tool, f"{path} is not {value!r:.80}")
        return value

    def _properties(self, path: str, given: Json, depth: int) -> dict[str, Json]:
        said = object_of(given)
        if said is None:
            raise wrong(self._tool, f"{path} is an object of schemas")
        for name in said:
            if not _is_name(name):
                raise wrong(self._tool, f"{path}: {name!r:.80} is no name of an argument")
        return {name: self.schema(f"{path}.{name}", part, depth + 1) for name, part in said.items()}

    def _several(self, path: str, given: Json, depth: int) -> list[Json]:
        parts = array_of(given)
        if not parts:
            raise wrong(self._tool, f"{path} is a list of schemas")
        return [self.schema(f"{path}.{place}", part, depth + 1) for place, part in enumerate(parts)]


def example(schema: Json) -> Json:
    """Some value that the simple parts of a schema allow."""
    said = object_of(schema) or {}
    for key in ("const", "default"):
        if key in said:
            return said[key]
    if said.get("enum"):
        return said["enum"][0]
    kinds = array_of(said.get("type")) or (said.get("type"),)
    match kinds[0]:
        case "object":
            parts = object_of(said.get("properties")) or {}
            return {key: example(parts.get(key)) for key in said.get("required") or ()}
        case "string":
            return "x" * max(1, said.get("minLength", 1))
        case "integer" | "number":
            above = said.get("exclusiveMinimum")
            return said.get("minimum", 0) if above is None else int(above) + 1
        case "boolean":
            return False
        case "array":
            return [example(said.get("items"))] * said.get("minItems", 0)
        case _:
            return None


def _is_name(value: Json) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _is_type(value: Json) -> bool:
    several = array_of(value)
    if several is None:
        return value in _TYPES
    return bool(several) and all(part in _TYPES for part in several)


def _are_names(value: Json) -> bool:
    names = array_of(value)
    return names is not None and all(map(_is_name, names)) and len({*names}) == len(names)


def _are_words(value: Json) -> bool:
    words = array_of(value)
    return words is not None and 0 < len(words) <= 500 and all(map(_is_plain, words))


def _is_plain(value: Json) -> bool:
    return value is None or isinstance(value, bool | int | float) or _is_text(value)


def _is_text(value: Json) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _is_count(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 1_000_000


def _is_pattern(value: Json) -> bool:
    if not isinstance(value, str) or len(value) > 500:
        return False
    try:
        re.compile(value)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


_FITS: Final[Mapping[str, Callable[[Json], bool]]] = {
    "type": _is_type,
    "required": _are_names,
    "enum": _are_words,
    "const": _is_plain,
    "default": _is_plain,
    "pattern": _is_pattern,
    "uniqueItems": lambda value: isinstance(value, bool),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        _is_count,
    ),
}
_SHOWN: Final = frozenset({"title", "description", "format"})
_SAYS_NOTHING: Final = _SHOWN | {
    *("$schema", "$comment", "example", "examples", "deprecated", "readOnly", "writeOnly"),
    *("discriminator", "xml", "externalDocs"),
}
