"""Uploaded data on disk, by the digest of its content: each file complete or absent."""

from pathlib import Path

from rleaas.server.artifacts.incoming import IncomingFile, Received

MAX_BYTES = 1024**3


class AssetFiles:
    """Files under `root/<organisation>/<sha256>`: the same bytes are kept once in each."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self._root = root

    def path(self, organisation: int, sha256: str) -> Path:
        """Where the file is."""
        return self._root / str(organisation) / sha256

    def incoming(self, organisation: int) -> IncomingFile:
        """A file that is being received, on the disk of its place."""
        directory = self._root / str(organisation)
        directory.mkdir(parents=True, exist_ok=True)
        return IncomingFile(directory, "the data asset", "asset", most=MAX_BYTES)

    def keep(self, organisation: int, received: Received) -> None:
        """Put a completed file in its place."""
        received.path.replace(self.path(organisation, received.sha256))

    def remove(self, organisation: int, sha256: str) -> None:
        """Delete a file."""
        self.path(organisation, sha256).unlink(missing_ok=True)
