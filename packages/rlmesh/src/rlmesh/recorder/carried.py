"""Videos that an environment makes itself: named in its infos, copied into the bundle."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlcore import ConfigurationError

from rlmesh.recorder.naming import safe_name

CAMERA = "default"


@dataclass(frozen=True, slots=True)
class Carried:
    """A file that an info names, and how its name ends."""

    path: Path
    ending: str


def named_in(info: Mapping[str, object], keys: Sequence[str]) -> str | None:
    """Return the text that the first of `keys` has in an info, if it is one."""
    for key in keys:
        value = info.get(key)
        if isinstance(value, str) and value:
            return value
    return None


def carried(text: str) -> Carried:
    """Return the file that an environment named.

    Raises:
        ConfigurationError: it is no regular file in the current directory. An environment may be
            somebody else's, and must not choose which of this machine's files end up in a bundle.
    """
    here = Path.cwd().resolve()
    try:
        path = (here / text).resolve(strict=True)
    except (OSError, ValueError, RuntimeError) as error:
        raise ConfigurationError(
            f"the video {text!r} that the environment names is not there"
        ) from error
    if not path.is_relative_to(here):
        raise ConfigurationError(
            f"the video {text!r} that the environment names is outside of the current directory"
        )
    if not path.is_file():
        raise ConfigurationError(
            f"the video {text!r} that the environment names is no regular file"
        )
    ending = safe_name(path.suffix.removeprefix(".")) if path.suffix.strip(".") else "bin"
    return Carried(path, ending)


def copy(source: Carried, target: Path) -> None:
    """Copy a file.

    Raises:
        OSError: it cannot be read, or the disk does not take it.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source.path, target)
