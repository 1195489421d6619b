"""Data assets: upload, list, fetch, delete."""

from __future__ import annotations

from builtins import list as list_
from pathlib import Path

from rlcore import ConfigurationError, UnexpectedReply

from rleaas._binding import D, Resource, call
from rleaas._flow import request as build
from rleaas._flow.decode import read, read_list
from rleaas._flow.retry import ask, fetch
from rleaas._flow.wire import Flow, Request, Save, work
from rleaas.models import Shape
from rleaas.models.environment_parts import DataAsset
from rleaas.resources.references import IdRef, id_of, require_type

KIND = "data_asset"


class DataAssetsClient(Resource[D]):
    """Files that environments can be given."""

    @call
    def upload(
        self,
        file: str | Path | bytes,
        name: str | None = None,
        media_type: str = "application/octet-stream",
    ) -> Flow[DataAsset]:
        """Upload a file, or bytes, and return what the platform made of it.

        Args:
            file: a path, or the content itself.
            name: how it is listed; the file's own name where there is one.
            media_type: such as `text/csv`.

        Raises:
            ConfigurationError: bytes without a name, or a file that cannot be read.
        """
        if isinstance(file, bytes):
            content = file
        else:
            path = Path(file)
            name = name or path.name
            content = yield from work(lambda: _content(path))
        if not name:
            raise ConfigurationError("the data has no name", hint="Pass name=.")
        require_type(name, str, "name")
        require_type(media_type, str, "media_type")
        request = Request(
            method="POST",
            path="/api/data-assets",
            params=build.query({"name": name}),
            content=content,
            headers={"Content-Type": media_type, "Idempotency-Key": self._context.new_key()},
            keyed=True,
            timeout=self._context.at_least(300.0),
        )
        return read(DataAsset, request, (yield from ask(request, self._context)))

    @call
    def list(self) -> Flow[list_[DataAsset]]:
        """Return every asset, oldest first."""
        request = build.get("/api/data-assets")
        reply = yield from ask(request, self._context)
        found, _ = read_list(DataAsset, request, reply, "data_assets")
        return found

    @call
    def get(self, asset_id: IdRef) -> Flow[DataAsset]:
        """Return one asset.

        Raises:
            NotFoundError: there is none.
        """
        text = id_of(asset_id, "data asset")
        request = build.get(_path(text), kind=KIND, ref=text)
        return read(DataAsset, request, (yield from ask(request, self._context)))

    @call
    def download(self, asset_id: IdRef, path: str | Path) -> Flow[Path]:
        """Save an asset's content at `path`, which appears only if its digest is right.

        Raises:
            NotFoundError: there is none.
            UnexpectedReply: the platform sent other bytes; nothing was kept.
        """
        text = id_of(asset_id, "data asset")
        request = build.get(_path(text), kind=KIND, ref=text)
        asset = read(DataAsset, request, (yield from ask(request, self._context)))
        target = Path(path)
        content = build.get(_path(text) + "/file", kind=KIND, ref=text)
        saved = yield from fetch(Save(content, target, asset.sha256), self._context)
        if saved.sha256 != asset.sha256:
            raise UnexpectedReply(
                f"data asset {text!r} came with SHA-256 {saved.sha256}, not {asset.sha256}",
                hint="Nothing was kept. Download it again.",
                request_id=saved.reply.request_id,
            )
        return target

    @call
    def delete(self, asset_id: IdRef) -> Flow[Shape]:
        """Delete an asset that no environment is given any more.

        Raises:
            NotFoundError: there is none.
            ConflictError: environments are given it.
        """
        text = id_of(asset_id, "data asset")
        request = Request(method="DELETE", path=_path(text), kind=KIND, ref=text)
        return read(Shape, request, (yield from ask(request, self._context)))


def _path(asset_id: str) -> str:
    return build.path("/api/data-assets/{}", asset_id, what="asset id")


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{str(path)!r} cannot be read: {error}") from error
