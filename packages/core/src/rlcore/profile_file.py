"""Changes to the file of named settings; what somebody wrote into it by hand stays as it is."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from rlcore.errors import ConfigurationError
from rlcore.profiles import read_document

_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_TABLE: Final = re.compile(r"\s*\[")
_DEFAULT: Final = re.compile(r"\s*default_profile\s*=")

Value = str | int | float


@dataclass(frozen=True, slots=True)
class ProfileNames:
    """The profiles of a file, and the one that counts where none is named."""

    names: tuple[str, ...]
    default: str | None


def profile_names(path: Path) -> ProfileNames:
    """Return which profiles the file has; a file that is missing has none.

    Raises:
        ConfigurationError: it is not readable TOML of this form.
    """
    document = _document(path)
    default = document.get("default_profile")
    return ProfileNames(
        tuple(_tables(path, document)), default if isinstance(default, str) else None
    )


def save_profile(path: Path, name: str, values: Mapping[str, Value]) -> None:
    """Write a profile, in place of an earlier one of this name; the first becomes the default.

    The file is readable by its owner only, as there may be a key in it.

    Raises:
        ConfigurationError: the name cannot be one, or the file is of another form.
    """
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{name!r} cannot be the name of a profile",
            hint="Use letters, digits, '-' and '_'.",
        )
    document = _document(path)
    tables = _tables(path, document)
    wanted = {**document, "profiles": {**tables, name: dict(values)}}
    first = "default_profile" not in document
    if first:
        wanted["default_profile"] = name

    def edit(lines: list[str]) -> list[str]:
        table = [f"[profiles.{name}]", *(f"{key} = {_toml(values[key])}" for key in values)]
        kept = _without(lines, name)
        while kept and not kept[-1].strip():
            kept.pop()
        kept += [*([""] if kept else []), *table]
        return _with_default(kept, name) if first else kept

    _rewrite(path, edit, wanted)


def use_profile(path: Path, name: str) -> None:
    """Make a profile the one that counts where none is named.

    Raises:
        ConfigurationError: there is no such profile, or the file is of another form.
    """
    document = _document(path)
    _require(path, document, name)
    _rewrite(path, lambda lines: _with_default(lines, name), {**document, "default_profile": name})


def remove_profile(path: Path, name: str) -> None:
    """Take a profile out of the file.

    Raises:
        ConfigurationError: there is no such profile, or the file is of another form.
    """
    document = _document(path)
    _require(path, document, name)
    tables = _tables(path, document)
    wanted = {**document, "profiles": {key: tables[key] for key in tables if key != name}}
    was_default = wanted.get("default_profile") == name
    if was_default:
        del wanted["default_profile"]
    if not wanted["profiles"]:
        del wanted["profiles"]

    def edit(lines: list[str]) -> list[str]:
        kept = _without(lines, name)
        return _without_default(kept) if was_default else kept

    _rewrite(path, edit, wanted)


def _document(path: Path) -> dict[str, object]:
    return read_document(path) or {}


def _tables(path: Path, document: Mapping[str, object]) -> dict[str, object]:
    tables = document.get("profiles", {})
    if not isinstance(tables, dict):
        raise ConfigurationError(
            f"{str(path)!r} is not a profile file", hint="Write one [profiles.NAME] table each."
        )
    return cast("dict[str, object]", tables)


def _require(path: Path, document: Mapping[str, object], name: str) -> None:
    tables = _tables(path, document)
    if name not in tables:
        known = ", ".join(sorted(tables)) or "none"
        raise ConfigurationError(
            f"profile {name!r} is not in {str(path)!r} (there: {known})",
            hint="`rleaas profile list` shows them.",
        )


def _without(lines: list[str], name: str) -> list[str]:
    header = re.compile(rf"""\s*\[\s*profiles\s*\.\s*(["']?){re.escape(name)}\1\s*\]\s*(#.*)?""")
    kept: list[str] = []
    inside = False
    for line in lines:
        if _TABLE.match(line):
            inside = header.fullmatch(line) is not None
        if not inside:
            kept.append(line)
    return kept


def _with_default(lines: list[str], name: str) -> list[str]:
    return [f"default_profile = {_toml(name)}", *_without_default(lines)]


def _without_default(lines: list[str]) -> list[str]:
    head = next((at for at, line in enumerate(lines) if _TABLE.match(line)), len(lines))
    return [line for line in lines[:head] if not _DEFAULT.match(line)] + lines[head:]


def _toml(value: Value) -> str:
    # Texts of JSON are texts of TOML.
    return json.dumps(value, ensure_ascii=False)


def _rewrite(
    path: Path, edit: Callable[[list[str]], list[str]], wanted: Mapping[str, object]
) -> None:
    import tomllib  # most processes change no file

    before = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    text = "".join(f"{line}\n" for line in edit(before))
    try:
        is_as_wanted = tomllib.loads(text) == wanted
    except tomllib.TOMLDecodeError:
        is_as_wanted = False
    if not is_as_wanted:
        raise ConfigurationError(
            f"{str(path)!r} is written in a way that cannot be changed safely",
            hint="Change it by hand.",
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".profiles-")  # 0600
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except OSError as error:
        raise ConfigurationError(
            f"the profile file {str(path)!r} cannot be written: {error}",
            hint="Name another one in RLEAAS_CONFIG.",
        ) from error
