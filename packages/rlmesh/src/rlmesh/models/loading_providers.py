"""Policies that other packages load: by the scheme of an address, or the format of a checkpoint.

A package offers one through the entry-point group `rlmesh.models`. An entry named by a scheme, such
as `rleaas`, is called as `load(address, *, device, deterministic, name)`; one named by the format
in a checkpoint's manifest, such as `rleaas.checkpoint.v1`, with the path of the file instead.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, Final, cast

from rlcore import ConfigurationError

from rlmesh.models.model import Model, is_model
from rlmesh.models.model_files import ModelFileError, manifest_format

GROUP: Final = "rlmesh.models"
PROVIDERS: Final = {"rleaas": 'pip install "rleaas[train]"'}

# Any, in this room: models of whatever spaces.


def load_address(address: str, **options: Any) -> Model[Any, Any]:
    """Return the model at an address such as `rleaas://checkpoints/ID`.

    Raises:
        ConfigurationError: nothing installed loads models of its scheme.
    """
    scheme = address.partition("://")[0].lower()
    load = _provider(scheme)
    if load is None:
        raise ConfigurationError(
            f"nothing installed loads models from {scheme!r} addresses such as {address!r}",
            hint=_hint(scheme) or "A served model is dialled with rlmesh.RemoteModel(address).",
        )
    return _made(load, address, options)


def load_with_manifest(path: Path, **options: Any) -> Model[Any, Any]:
    """Return the model in a checkpoint that says of itself what it is.

    Raises:
        ModelFileError: nothing installed loads checkpoints of its format.
    """
    named = manifest_format(path) or ""
    load = _provider(named)
    if load is None:
        raise ModelFileError(
            f"{path.name!r} is a checkpoint of the format {named!r}, which nothing installed loads",
            hint=_hint(named.partition(".")[0]) or "Install the package that wrote it.",
        )
    return _made(load, path, options)


def _made(load: Callable[..., Any], source: object, options: dict[str, Any]) -> Model[Any, Any]:
    made = load(source, **options)
    if not is_model(made):
        raise ConfigurationError(
            f"what loads {str(source)!r} gave {made!r}, which is no Model",
            hint="Report it to the package that registered it.",
        )
    return made


def _provider(name: str) -> Callable[..., Any] | None:
    for point in metadata.entry_points(group=GROUP):
        if point.name.lower() == name.lower():
            try:
                return cast("Callable[..., Any]", point.load())
            except (ImportError, AttributeError) as error:
                raise ConfigurationError(
                    f"what loads {name!r} models cannot be loaded from {point.value!r}: {error}",
                    hint=_hint(name.partition(".")[0]) or "Reinstall it.",
                ) from error
    return None


def _hint(package: str) -> str | None:
    command = PROVIDERS.get(package)
    return None if command is None else f"Install it: {command}"
