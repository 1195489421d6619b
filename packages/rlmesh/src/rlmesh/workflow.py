"""Which workflow edition whoever serves or drives has declared, and where they did."""

from __future__ import annotations

import os
import tomllib
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

from rlcore import ConfigurationError
from rlcore.environ import snapshot

from rlmesh.protocol.editions import EDITION, EDITIONS, declared_edition

EDITION_VARIABLE: Final = "RLMESH_WORKFLOW_EDITION"
_told: list[bool] = []


class WorkflowEditionWarning(UserWarning):
    """Nobody declared an edition, and this build runs several: an upgrade may change which."""


def chosen_edition(
    *,
    keyword: str | None = None,
    option: str | None = None,
    declared: str | None = None,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> str | None:
    """Return the edition that was declared; None where none was.

    The first of these that says one: the argument of the call; RLMESH_WORKFLOW_EDITION, which says
    that none is meant where it is set and empty; an option of the server; the class;
    `[tool.rlmesh] workflow_edition` in the nearest pyproject.toml upward.

    Raises:
        ConfigurationError: this build does not run it, or the pyproject.toml cannot be read.
    """
    if keyword is not None and keyword.strip():
        return declared_edition(keyword)
    variable = (snapshot() if environ is None else environ).get(EDITION_VARIABLE)
    if variable is not None:
        return declared_edition(variable)
    for said in (option, declared):
        if said is not None and said.strip():
            return declared_edition(said)
    found = declared_edition(_of_project(folder or Path.cwd()))
    several: int = len(EDITIONS)
    if found is None and several > 1 and not _told:
        _told.append(True)
        warnings.warn(
            f"no workflow edition is declared, so it is {EDITION!r} until rlmesh is upgraded; "
            f"declare workflow_edition on the class, or set {EDITION_VARIABLE}",
            WorkflowEditionWarning,
            stacklevel=3,
        )
    return found


def _of_project(folder: Path) -> str | None:
    for place in (folder, *folder.parents):
        file = place / "pyproject.toml"
        if not file.is_file() or not os.access(file, os.R_OK):
            continue
        try:
            found: object = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ConfigurationError(
                f"{file} cannot be read for a workflow edition: {error}",
                hint=f"Set {EDITION_VARIABLE} to pass it over.",
            ) from error
        for key in ("tool", "rlmesh", "workflow_edition"):
            found = cast("dict[str, object]", found).get(key) if isinstance(found, dict) else None
        if found is not None and not isinstance(found, str):
            raise ConfigurationError(f"{file}: workflow_edition of tool.rlmesh is {found!r}")
        return found
    return None
