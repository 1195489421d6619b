"""The keys that platforms sign reports with, as they were when they were first seen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, cast

from rlcore import ConfigurationError, ReportNotVerified
from rlcore.profiles import default_path

from rleaas.models import ReportKey

FILE: Final = "report_keys.json"
Trust = Literal["known", "first_use"]
"""Whether a key is the one that was seen before, or nobody has seen one of this platform yet."""


def known_keys(environ: Mapping[str, str]) -> Path:
    """Where they are kept: beside the file of the profiles."""
    return default_path(environ).with_name(FILE)


def trusted(file: Path, platform: str, key: ReportKey, report: Path) -> Trust:
    """Hold a platform's key against the one that it had; the first one is kept.

    Args:
        file: where keys are kept.
        platform: its address.
        key: what it says its key is now.
        report: what is to be checked with it, for the message.

    Raises:
        ReportNotVerified: it had another one (`report_key_changed`).
        ConfigurationError: the file is none that this wrote.
    """
    kept = _read(file)
    before = kept.get(platform)
    if before is None:
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        text = json.dumps({**kept, platform: key.public_key}, indent=2, sort_keys=True)
        part.write_text(f"{text}\n", "utf-8")
        part.replace(file)
        return "first_use"
    if before.strip() != key.public_key.strip():
        raise ReportNotVerified(
            str(report),
            f"{platform} has another key than when it was first asked: {key.key_id} now. Either it "
            f"has a new server.key, or it is not who it was; if you know that it is, take its line "
            f"out of {str(file)!r}",
            code="report_key_changed",
        )
    return "known"


def _read(file: Path) -> dict[str, str]:
    try:
        told: object = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise _unreadable(file) from error
    if not isinstance(told, dict):
        raise _unreadable(file)
    found = cast("Mapping[str, object]", told)
    return {platform: key for platform, key in found.items() if isinstance(key, str)}


def _unreadable(file: Path) -> ConfigurationError:
    return ConfigurationError(
        f"{str(file)!r}, which has the keys of platforms, is no JSON object",
        hint="Delete it; keys are then kept as they are seen next",
    )
