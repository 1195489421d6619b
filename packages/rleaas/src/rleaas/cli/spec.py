"""What commands read from files and from options that hold more than a word."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, TypeVar, cast

import typer
from rlcore import ConfigurationError

T = TypeVar("T")

LARGEST = 16 * 1024 * 1024
"""The bytes of a spec at most; what is larger is no description of anything."""

STDIN = "-"

SpecFile = Annotated[
    str | None,
    typer.Option(
        "--file",
        "-f",
        metavar="FILE",
        help="JSON or YAML with the fields; `-` reads standard input. Options win over it.",
    ),
]

_KINDS: Mapping[type, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}


def call_with(method: Callable[..., T], fields: Mapping[str, object]) -> T:
    """Call a method with fields that were checked before."""
    return method(**fields)


def fields_from(
    file: str | None,
    known: Mapping[str, type],
    given: Mapping[str, object],
    *,
    required: tuple[str, ...] = (),
) -> dict[str, object]:
    """Return the fields of a spec file with those given as options over them.

    Args:
        file: where the spec is, if there is one.
        known: the fields that there are, and what each of them is.
        given: those of options; None is not given.
        required: fields that have to be there in the end.

    Raises:
        ConfigurationError: the file cannot be read, or a field is unknown, of another kind, or
            missing.
    """
    fields = {} if file is None else checked_fields(shown(file), read_object(file), known)
    fields.update({name: value for name, value in given.items() if value is not None})
    missing = [name for name in required if fields.get(name) in (None, "")]
    if missing:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in missing)
        raise ConfigurationError(
            f"{', '.join(map(repr, missing))} is missing",
            hint=f"Pass it ({options}), or put it into the spec of --file.",
        )
    return fields


def read_object(file: str) -> dict[str, object]:
    """Return the object in a JSON or YAML file, or on standard input.

    Raises:
        ConfigurationError: it cannot be read, or is none.
    """
    value = read_value(file)
    if not isinstance(value, dict):
        raise ConfigurationError(
            f"{shown(file)} holds {_kind_of(value)}, not an object of fields",
            hint='Write it as name: value, one to a line, or as {"name": value}.',
        )
    for key in cast("dict[object, object]", value):
        if not isinstance(key, str):
            raise ConfigurationError(f"{shown(file)} has the field {key!r}, which is not text")
    return cast("dict[str, object]", value)


def read_value(file: str) -> object:
    """Return what a JSON or YAML file holds, or standard input.

    Raises:
        ConfigurationError: it cannot be read, is too large, empty, or neither JSON nor YAML.
    """
    text = _text(file)
    if not text.strip():
        raise ConfigurationError(f"{shown(file)} is empty")
    if file.lower().endswith(".json"):
        return json_value(shown(file), text)
    try:
        return cast("object", json.loads(text, parse_constant=_no_constant))
    except _NoNumberError as error:
        # YAML would take it as a word.
        raise ConfigurationError(f"{shown(file)} is not JSON: {error}") from error
    except (ValueError, RecursionError):
        return _yaml(shown(file), text)


def json_object(option: str, text: str) -> dict[str, object]:
    """Return an option's JSON object; `@FILE` reads it from a file.

    Raises:
        ConfigurationError: it is not one.
    """
    if text.startswith("@"):
        return read_object(text[1:])
    value = json_value(f"{option} {clipped(text)!r}", text)
    if not isinstance(value, dict):
        raise ConfigurationError(
            f"{option} {clipped(text)!r} is not a JSON object",
            hint='Write it as {"key": value}.',
        )
    return cast("dict[str, object]", value)


def json_list(option: str, text: str) -> list[object]:
    """Return an option's JSON list; `@FILE` reads it from a file.

    Raises:
        ConfigurationError: it is not one.
    """
    value = (
        read_value(text[1:])
        if text.startswith("@")
        else json_value(f"{option} {clipped(text)!r}", text)
    )
    if not isinstance(value, list):
        raise ConfigurationError(
            f"{option} {clipped(text)!r} is not a JSON list", hint="Write it as [value, value]."
        )
    return cast("list[object]", value)


def json_objects(option: str, text: str) -> list[dict[str, object]]:
    """Return an option's JSON list of objects; `@FILE` reads it from a file.

    Raises:
        ConfigurationError: it is not one.
    """
    found = json_list(option, text)
    for index, item in enumerate(found):
        if not isinstance(item, dict):
            raise ConfigurationError(
                f"item {index} of {option} is {_kind_of(item)}, not an object",
                hint='Write it as [{"key": value}].',
            )
    return cast("list[dict[str, object]]", found)


def optional_object(option: str, text: str | None) -> dict[str, object] | None:
    """Return an option's JSON object, None where it was not given."""
    return None if text is None else json_object(option, text)


def json_value(what: str, text: str) -> object:
    """Return the value of a JSON text.

    Raises:
        ConfigurationError: it is not JSON.
    """
    try:
        return cast("object", json.loads(text, parse_constant=_no_constant))
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{what} is not JSON: {error}") from error


def settings_from(option: str, pairs: list[str] | None) -> dict[str, object]:
    """Read KEY=VALUE settings; a value that is JSON is taken as such, any other as text.

    Raises:
        ConfigurationError: a pair has no key or no `=`.
    """
    settings: dict[str, object] = {}
    for pair in pairs or ():
        key, separator, text = pair.partition("=")
        if not separator or not key:
            raise ConfigurationError(
                f"{option} {clipped(pair)!r} is not KEY=VALUE", hint="Write it as gamma=0.95."
            )
        try:
            settings[key] = json.loads(text, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            settings[key] = text
    return settings


def shown(file: str) -> str:
    """Return what a spec's place is called in a sentence."""
    return "standard input" if file == STDIN else repr(file)


def clipped(text: str, most: int = 80) -> str:
    """Return a text short enough for one line."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def checked_fields(
    what: str, fields: Mapping[str, object], known: Mapping[str, type]
) -> dict[str, object]:
    """Return the fields of a spec that are not null, each of its kind.

    Raises:
        ConfigurationError: a field is unknown, or of another kind; it is named.
    """
    for name, value in fields.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise ConfigurationError(
                f"{what} has the unknown field {clipped(name)!r}",
                hint=f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}",
            )
        kind = known[name]
        is_one = isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool)
        is_number = kind is float and isinstance(value, int) and not isinstance(value, bool)
        if value is not None and not is_one and not is_number:
            raise ConfigurationError(f"{name!r} of {what} is {_kind_of(value)}, not {_KINDS[kind]}")
    return {name: value for name, value in fields.items() if value is not None}


def _kind_of(value: object) -> str:
    if value is None:
        return "null"
    return _KINDS.get(type(value), type(value).__name__)


def _text(file: str) -> str:
    try:
        if file == STDIN:
            text = sys.stdin.read(LARGEST + 1)
            size = len(text)
        else:
            path = Path(file).expanduser()
            size = path.stat().st_size if path.is_file() else 0
            text = "" if size > LARGEST else path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{shown(file)} is not text in UTF-8") from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigurationError(f"cannot read {shown(file)}: {why}") from error
    if size > LARGEST:
        raise ConfigurationError(
            f"{shown(file)} is larger than the {LARGEST // 1024**2} MiB that a spec may have"
        )
    return text


def _yaml(what: str, text: str) -> object:
    from rleaas.cli.yaml_text import load

    try:
        return load(text)
    except ValueError as error:
        raise ConfigurationError(
            f"{what} is neither JSON nor YAML: {clipped(str(error), 200)}"
        ) from error


class _NoNumberError(ValueError):
    """JSON as Python writes it, with what no other reader takes."""


def _no_constant(name: str) -> object:
    raise _NoNumberError(f"{name} is no JSON number")


def require_changes(changes: Mapping[str, object]) -> None:
    """Return if there is something to change.

    Raises:
        ConfigurationError: there is nothing.
    """
    if not changes:
        raise ConfigurationError(
            "there is nothing to change", hint="Pass a field as an option, or a --file with some."
        )


def objects_from(file: str, field: str) -> list[dict[str, object]]:
    """Return the objects in a file: a list of them, or an object that has the list in a field.

    Raises:
        ConfigurationError: the file cannot be read, or holds something else.
    """
    value = read_value(file)
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        value = fields.get(field, fields)
    items = cast("list[object]", value) if isinstance(value, list) else [value]
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise ConfigurationError(
                f"{shown(file)} holds {_kind_of(item)} where item {index} of its {field} should be",
                hint=f"Write a list of objects, or an object with {field!r}.",
            )
    return cast("list[dict[str, object]]", items)
