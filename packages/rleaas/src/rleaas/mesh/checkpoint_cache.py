"""Checkpoint files on this machine, under the digest of their content."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlcore import ConfigurationError, UnexpectedReply
from rlcore.environ import variable

from rleaas.models import Checkpoint

if TYPE_CHECKING:
    import rlmesh.numpy

_DIGEST = re.compile(r"[0-9a-f]{64}")


def folder() -> Path:
    """Return where the files are kept: RLEAAS_CACHE, else `rleaas` in the user's cache folder.

    Raises:
        ConfigurationError: there is no home folder to find it in.
    """
    chosen = variable("RLEAAS_CACHE")
    if chosen is not None:
        return Path(chosen)
    shared = variable("XDG_CACHE_HOME")
    try:
        return (Path.home() / ".cache" if shared is None else Path(shared)) / "rleaas"
    except RuntimeError as error:
        raise ConfigurationError(
            "there is no home folder to keep checkpoints in",
            hint="Set RLEAAS_CACHE to a folder.",
        ) from error


def place(record: Checkpoint) -> Path:
    """Return where the checkpoint's file belongs.

    Raises:
        UnexpectedReply: the digest on record is none; as a path it could point anywhere.
    """
    digest = record.sha256 or ""
    if not _DIGEST.fullmatch(digest):
        raise UnexpectedReply(
            f"the platform's SHA-256 of checkpoint {record.id!r} is {digest!r}",
            hint="Use a server that records digests of checkpoints.",
        )
    return folder() / "checkpoints" / f"{digest}.zip"


def holds(path: Path, record: Checkpoint) -> bool:
    """Tell whether the file is there and is the checkpoint's, byte for byte."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == record.sha256
    except OSError:
        # Not there or not readable: it is fetched again, and what is wrong with the place shows.
        return False


def load(path: Path, record: Checkpoint) -> rlmesh.numpy.Model[Any, Any]:
    """Return the policy in a verified file.

    Raises:
        MissingDependencyError: the extra `rleaas[train]` is not installed.
    """
    from rleaas.training.policy import load_policy

    return load_policy(path, record.algorithm)
