"""`rleaas data …`: files that environments can be given."""

from __future__ import annotations

import mimetypes
from pathlib import Path
from typing import Annotated

import typer
from rlcore import ConfigurationError

from rleaas.cli.command import Asked, command
from rleaas.cli.confirm import Yes, confirm
from rleaas.cli.console import Column, columns
from rleaas.cli.nouns import noun
from rleaas.cli.references import AssetRef

app = noun("data")

SHOWN = (
    *columns("id", "name"),
    Column("type", "media_type"),
    Column("bytes", "size_bytes"),
    Column("SHA-256", "sha256"),
    Column("created", "created_at"),
)


@command(app, "list", "list --json")
def list_assets(asked: Asked) -> None:
    """List the data assets, oldest first."""
    asked.rows(
        asked.client.DataAsset.list(), SHOWN, empty="No data. `rleaas data upload FILE` adds some."
    )


@command(app, "get", "get data_1")
def get(asked: Asked, asset: AssetRef) -> None:
    """Show one data asset."""
    asked.facts(asked.client.DataAsset.get(asset), SHOWN)


@command(app, "upload", "upload accounts.csv", "upload dump.bin --name accounts --type text/csv")
def upload(
    asked: Asked,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="What to upload.")],
    name: Annotated[str | None, typer.Option(help="What to call it [the file's name].")] = None,
    media_type: Annotated[
        str | None, typer.Option("--type", metavar="MEDIA_TYPE", help="[by the file's name].")
    ] = None,
) -> None:
    """Upload a file."""
    if not path.is_file():
        raise ConfigurationError(f"there is no file {str(path)!r}")
    guessed = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    asked.facts(asked.client.DataAsset.upload(path, name, media_type or guessed), SHOWN)


@command(app, "download", "download data_1 accounts.csv")
def download(
    asked: Asked,
    asset: AssetRef,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Where to save it.")],
) -> None:
    """Save a data asset's content, which appears only if its digest is right."""
    saved = asked.client.DataAsset.download(asset, path)
    asked.done({"saved": str(saved)}, f"saved {saved}")


@command(app, "delete", "delete data_1 --yes")
def delete(asked: Asked, asset: AssetRef, yes: Yes = False) -> None:
    """Delete a data asset that no environment is given any more."""
    found = asked.client.DataAsset.get(asset)
    confirm(f"Delete data asset {found.name!r} ({found.id})?", yes=yes)
    asked.done(asked.client.DataAsset.delete(found.id), f"deleted {found.id}")
