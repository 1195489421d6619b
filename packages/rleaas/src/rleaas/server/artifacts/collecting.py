"""Which files are in use: those that rows name; the others go."""

import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Final

from sqlalchemy import select

from rleaas.server.artifacts.incoming import Received
from rleaas.server.artifacts.store import ArtifactStore
from rleaas.server.store.database import Database
from rleaas.server.store.tables import CheckpointRow, ExportRow, RolloutRow

COLLECTING: Final = "collecting files that nothing refers to"
# Where releases before artifacts kept `<job>/<checkpoint>.zip`.
_OLD_FOLDER: Final = "checkpoints"


class ArtifactRound:
    """Collects files without rows, after it took over those of earlier releases."""

    def __init__(self, database: Database, artifacts: ArtifactStore, data_dir: Path) -> None:
        self._database = database
        self._artifacts = artifacts
        self._old = data_dir / _OLD_FOLDER

    def step(self) -> bool:
        """Do it all; there is never more to do at once."""
        self._artifacts.collect(self.in_use)
        return False

    def discard(self, digests: Collection[str]) -> None:
        """Delete those of these files that no row names any more."""
        self._artifacts.discard(digests, self.in_use)

    def in_use(self) -> set[str]:
        """The digests that rows name, those of all organisations."""
        with self._database.read() as session:
            found = session.execute(select(CheckpointRow.sha256, CheckpointRow.state_sha256))
            exports = session.scalars(select(ExportRow.sha256))
            of_rollouts = select(RolloutRow.file_sha256).where(RolloutRow.file_sha256.is_not(None))
            rollouts = session.scalars(of_rollouts.distinct())
            named = (one for pair in found for one in pair)
            return {one for one in (*named, *exports, *rollouts) if one is not None}

    def take_over(self) -> None:
        """Move the files of an earlier release, or of its backup, to where they belong now."""
        self._artifacts.take_over_local()
        if not self._old.is_dir():
            return
        with self._database.read() as session:
            rows = session.execute(
                select(
                    CheckpointRow.job_id,
                    CheckpointRow.id,
                    CheckpointRow.sha256,
                    CheckpointRow.size_bytes,
                )
            ).all()
        for job_id, checkpoint_id, sha256, size in rows:
            path = self._old / job_id / f"{checkpoint_id}.zip"
            # Another size can only be damage, which stays where it can be looked at.
            if path.is_file() and path.stat().st_size == size:
                with self._artifacts.keep(Received(path, sha256, size)):
                    path.unlink(missing_ok=True)
        for directory in [*self._old.iterdir(), self._old]:
            if directory.is_dir() and not any(directory.iterdir()):
                shutil.rmtree(directory)
