"""The file of named settings: `[profiles.NAME]` tables and a `default_profile`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from rlcore.environ import variable
from rlcore.errors import ConfigurationError

CONFIG_VARIABLE = "RLEAAS_CONFIG"


@dataclass(frozen=True, slots=True)
class Profile:
    """One table of the file.

    Attributes:
        name: the profile's name.
        path: the file that it came from.
        values: its keys, as TOML gave them.
    """

    name: str
    path: Path
    values: Mapping[str, object]


def default_path(environ: Mapping[str, str]) -> Path:
    """Return where the file is: RLEAAS_CONFIG, else the user's `rleaas/config.toml`."""
    named = variable(CONFIG_VARIABLE, environ)
    if named is not None:
        return Path(named).expanduser()
    home = variable("XDG_CONFIG_HOME", environ)
    root = Path(home) if home else Path("~/.config").expanduser()
    return root / "rleaas" / "config.toml"


def load_profile(path: Path, name: str | None) -> Profile | None:
    """Return the named profile, or the file's `default_profile` when no name is given.

    Without a name, a file that is missing or names no default gives None.

    Raises:
        ConfigurationError: the file is not readable TOML of this form, or lacks the profile.
    """
    document = read_document(path)
    if document is None:
        if name is None:
            return None
        raise ConfigurationError(
            f"profile {name!r} is not there: {str(path)!r} does not exist",
            hint=f"Create the file with a [profiles.{name}] table in it.",
        )
    chosen = name if name is not None else document.get("default_profile")
    if chosen is None:
        return None
    profiles = document.get("profiles", {})
    if not isinstance(chosen, str) or not isinstance(profiles, dict):
        raise ConfigurationError(
            f"{str(path)!r} is not a profile file",
            hint='Write default_profile = "NAME" and one [profiles.NAME] table each.',
        )
    tables = cast("dict[str, object]", profiles)
    table = tables.get(chosen)
    if not isinstance(table, dict):
        known = ", ".join(sorted(tables)) or "none"
        raise ConfigurationError(
            f"profile {chosen!r} is not in {str(path)!r} (there: {known})",
            hint=f"Add a [profiles.{chosen}] table, or choose another profile.",
        )
    return Profile(chosen, path, cast("dict[str, object]", table))


def read_document(path: Path) -> dict[str, object] | None:
    """Return the whole file; None: there is none.

    Raises:
        ConfigurationError: it is not readable TOML.
    """
    import tomllib  # most processes read no file

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"the profile file {str(path)!r} cannot be read: {error}",
            hint=f"Mend it, or name another one in {CONFIG_VARIABLE}.",
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(
            f"the profile file {str(path)!r} is not TOML: {error}", hint="Mend that line."
        ) from error
