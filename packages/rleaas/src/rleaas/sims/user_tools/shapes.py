"""Parts of users' JSON as what they are, or as nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from rlcore import ConfigurationError

from rleaas.sims.state import Json

Object = Mapping[str, Json]


def object_of(value: object) -> Object | None:
    """The value, if it is an object."""
    return cast("Object", value) if isinstance(value, Mapping) else None


def array_of(value: object) -> Sequence[Json] | None:
    """The value, if it is a list."""
    return cast("Sequence[Json]", value) if isinstance(value, list | tuple) else None


def wrong(tool: str, what: str) -> ConfigurationError:
    """The refusal of a tool's record."""
    return ConfigurationError(f"tool {tool!r}: {what}", code="invalid_tool")
