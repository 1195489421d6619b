"""A config.json as a whole: read, checked, and what of it is to be started."""

from __future__ import annotations

import difflib
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

from rlcore import ConfigurationError, Secret
from rlcore.settings import read_url

from rleaas.training.run_file.entries import Run, read_entry
from rleaas.training.run_file.positions import (
    Node,
    NotJson,
    Position,
    member_path,
    parse,
    unsendable,
)
from rleaas.training.run_file.problems import Findings, Problem

START: Final = Position(1, 1)
TOP_KEYS: Final = ("training", "api_key", "base_url")
_SILENT: Final = ("$schema",)


@dataclass(frozen=True, slots=True)
class RunFile:
    """A checked config.json.

    Attributes:
        path: where it is, as it was named.
        runs: what its entries ask for; those that are wrong are missing.
        errors: all that is wrong, in the order of the file.
        warnings: all that has no effect, or another one than it may seem.
        api_key: who is asking, where it says so.
        base_url: the server, where it says so.
    """

    path: str
    runs: Sequence[Run] = ()
    errors: Sequence[Problem] = ()
    warnings: Sequence[Problem] = ()
    api_key: Secret | None = None
    base_url: str | None = None
    entries: Sequence[Mapping[str, object]] = field(default=(), repr=False)


def read_file(path: str | Path) -> RunFile:
    """Read and check a file; what is wrong with it is among its `errors`.

    Raises:
        ConfigurationError: there is no such file, nobody may read it, or it is a pipe or device.
    """
    try:
        kind = Path(path).stat().st_mode
        if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
            # Reading a pipe might never end.
            raise ConfigurationError(
                f"the config file {str(path)!r} is no regular file",
                code="config_file",
                hint="--config PATH names another one.",
            )
        content = Path(path).read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"cannot read the config file {str(path)!r}: {error.strerror}",
            code="config_file",
            hint="--config PATH names another one.",
        ) from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        problem = Problem("", Position(line, column), "the file is not UTF-8")
        return RunFile(str(path), errors=[problem])
    return read_text(text, str(path), Path(path).parent)


def read_text(text: str, path: str = "config.json", folder: Path | None = None) -> RunFile:
    """Check a text as `read_file` does; without a folder no file of a reward is looked for."""
    try:
        parsed = parse(text)
    except NotJson as error:
        return RunFile(path, errors=[Problem("", error.at, f"no JSON: {error}")])
    found = Findings()
    for below, at in parsed.repeated:
        found.refuse(below, at, "is there twice", "Remove one of them.")
    root = parsed.root
    for below, at, told in unsendable(root):
        found.refuse(below, at, told, "Write it without.")
    if not isinstance(root.value, dict):
        found.refuse("", root.at, 'must be an object: {"training": [ … ]}')
        return RunFile(path, errors=found.errors)
    api_key, base_url = _top(root, found)
    runs = _runs(root, folder, found)
    return RunFile(
        path,
        runs=runs,
        errors=sorted(found.errors, key=lambda one: one.at),
        warnings=sorted(found.warnings, key=lambda one: one.at),
        api_key=api_key,
        base_url=base_url,
        entries=_objects(root),
    )


def _top(root: Node, found: Findings) -> tuple[Secret | None, str | None]:
    for key, at in root.keys.items():
        if key in TOP_KEYS or key in _SILENT:
            continue
        near = difflib.get_close_matches(key, TOP_KEYS, n=1, cutoff=0.7)
        found.warn(
            member_path("", key),
            at,
            "is not read by a training",
            f"Did you mean {near[0]!r}?" if near else None,
        )
    secret = _text(root, "api_key", found)
    url = _text(root, "base_url", found)
    if url is not None:
        try:
            url = read_url(url)
        except ValueError as error:
            found.refuse("base_url", root.members["base_url"].at, str(error))
    return (None if secret is None else Secret(secret)), url


def _text(root: Node, key: str, found: Findings) -> str | None:
    member = root.members.get(key)
    if member is None or member.value is None:
        return None
    if not isinstance(member.value, str):
        found.refuse(key, member.at, "must be a string")
        return None
    return member.value.strip() or None


def _runs(root: Node, folder: Path | None, found: Findings) -> list[Run]:
    training = root.members.get("training")
    if training is None:
        found.refuse("training", root.at, "is missing", 'It is a list: "training": [ {…}, {…} ].')
        return []
    if not isinstance(training.value, list):
        found.refuse("training", training.at, "must be a list of entries")
        return []
    if not training.items:
        found.refuse("training", training.at, "has no entries")
    runs = [read_entry(node, index, folder, found) for index, node in enumerate(training.items)]
    _refuse_twins(training.items, found)
    return [run for run in runs if run is not None]


def _refuse_twins(items: Sequence[Node], found: Findings) -> None:
    first: dict[str, int] = {}
    for index, node in enumerate(items):
        member = node.members.get("training")
        if member is None or isinstance(member.value, bool | list | dict | float):
            continue
        told = str(member.value).strip()
        if told in first:
            found.refuse(
                f"training[{index}].training",
                member.at,
                f"{told!r} is the id of training[{first[told]}] already",
            )
        first.setdefault(told, index)


def _objects(root: Node) -> list[Mapping[str, object]]:
    value = cast("dict[str, object]", root.value).get("training")
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, object]", one) for one in items if isinstance(one, dict)]
