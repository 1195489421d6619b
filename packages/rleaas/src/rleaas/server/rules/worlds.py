"""Environments without a source of their own: the built-in world of their vertical."""

from collections.abc import Mapping
from typing import Final

from rlcore import ConfigurationError

from rleaas.sims import FACES, VERTICALS, Vertical, vertical_of
from rleaas.sims.options import settle, without_effect

SCHEME: Final = "sim"
FACE: Final = "face"
"""The key of an environment's config that says which face of its world is served."""
_SERVING: Final = "python://rleaas.sims.serving:world"


def world_source(vertical: str | None) -> str | None:
    """The source of the vertical's built-in world; None where there is none."""
    if vertical is None or vertical not in VERTICALS:
        return None
    return f"{SCHEME}://{VERTICALS[vertical].name}"


def world_of(source: str | None) -> Vertical | None:
    """The vertical whose world a source names; None: it names something else."""
    scheme, _, name = (source or "").partition("://")
    return vertical_of(name) if scheme == SCHEME else None


def require_world_config(
    source: str | None, config: Mapping[str, object] | None, kwargs: Mapping[str, object] | None
) -> None:
    """Refuse what the source's world cannot be told; other sources' config is their own.

    Raises:
        ConfigurationError: the config has an unknown key, with the nearest one, or a wrong value;
            or there are kwargs, which a world has none of.
    """
    vertical = world_of(source)
    if vertical is None:
        return
    if kwargs:
        raise ConfigurationError(
            f"the world {source} takes no kwargs, and got {', '.join(map(repr, sorted(kwargs)))}",
            code="invalid_config",
            hint="Say it in config",
        )
    said = dict(config or {})
    face = said.pop(FACE, FACES[0])
    if face not in FACES:
        raise ConfigurationError(
            f"{vertical.name}: config.{FACE} is one of {', '.join(FACES)}, not {face!r}",
            code="invalid_config",
        )
    settle(vertical.all_options, said, vertical.name)


def config_warnings(source: str | None, config: Mapping[str, object]) -> list[str]:
    """What an environment's config says that changes nothing in the world that it serves."""
    vertical = world_of(source)
    if vertical is None:
        return []
    return [
        f"config.{key} has no effect: the world of {vertical.name} has none"
        for key in without_effect(vertical.all_options, config)
    ]


def served_as(source: str, kwargs: Mapping[str, object]) -> tuple[str, Mapping[str, object]]:
    """What `rlmesh.serve` is told for a source: a world is made by a function of ours."""
    vertical = world_of(source)
    if vertical is None:
        return source, kwargs
    return _SERVING, {"vertical": vertical.name}
