"""Checkpoints in other forms: made in processes of their own, one at a time, and kept."""

import hashlib
import json
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, cast

import rlcore
from rlcore import Error, ServerFailure
from sqlalchemy import select

from rleaas.server.artifacts.incoming import PREFIX, Received
from rleaas.server.artifacts.store import ArtifactStore
from rleaas.server.children import Children
from rleaas.server.store import jobs
from rleaas.server.store.database import Database
from rleaas.server.store.tables import ExportRow, JsonObject
from rleaas.training.exports.order import ExportOrder

ExportCommand = Callable[[Path, Path], Sequence[str]]
"""(file with the order, file for the reply) to the command line."""

# Changes with what exports are made of: older ones are made anew.
_RECIPE: Final = 1
_AT_ONCE: Final = 1
_WAITING: Final = 16
_SECONDS: Final = 600.0
_TAIL: Final = 2000
# Its process answers with an error of ours by its name.
_VARIABLES: Final = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def export_command(order: Path, reply: Path) -> list[str]:
    """The command that makes one export."""
    return [sys.executable, "-m", "rleaas.training.exports.worker", str(order), str(reply)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """An export: of which checkpoint, whose, in which form, with which facts in it."""

    organisation: int
    checkpoint_id: str
    sha256: str
    form: str
    facts: Mapping[str, object] | None

    @property
    def recipe(self) -> str:
        """The digest of all that goes into the file."""
        parts = [_RECIPE, self.form, self.checkpoint_id, self.sha256, self.facts]
        text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A file that is there, and what was checked of it."""

    sha256: str
    size_bytes: int
    checks: JsonObject


class Exporter:
    """Makes exports; whoever asks for one that is being made waits for the same."""

    def __init__(
        self,
        database: Database,
        artifacts: ArtifactStore,
        children: Children,
        directory: Path,
        command: ExportCommand = export_command,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._database = database
        self._artifacts = artifacts
        self._children = children
        self._directory = directory
        self._command = command
        self._lock = threading.RLock()
        self._under_way: dict[str, Future[Export]] = {}
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="rleaas-exports")

    def close(self) -> None:
        """Begin nothing any more; the processes are stopped with the others."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def made(self, wanted: Wanted, *, wait: float) -> Export:
        """The export, made now if it was not before.

        Raises:
            ServerFailure: it takes longer than `wait` seconds and goes on (`export_in_progress`),
                too many are wanted, or its process failed.
            rlcore.Error: the checkpoint has no such form, is damaged or is gone.
        """
        recipe = wanted.recipe
        before = self._kept(wanted, recipe)
        if before is not None:
            return before
        with self._lock:
            future = self._under_way.get(recipe)
            if future is None:
                if len(self._under_way) >= _WAITING:
                    raise ServerFailure(
                        f"{_WAITING} exports are being made or wait for it",
                        status_code=503,
                        code="exports_busy",
                        retryable=True,
                        hint="Ask again later",
                    )
                future = self._pool.submit(self._make, wanted, recipe)
                self._under_way[recipe] = future
                future.add_done_callback(lambda _: self._forget(recipe))
        try:
            return future.result(wait)
        except NotYet as error:
            raise ServerFailure(
                f"the {wanted.form} export of checkpoint {wanted.checkpoint_id!r} is being made",
                status_code=503,
                code="export_in_progress",
                retryable=True,
                hint="Ask again in a moment; it goes on",
            ) from error

    def find(self, organisation: int, checkpoint_id: str, sha256: str) -> Export | None:
        """The export with this digest, if it was made of the checkpoint."""
        with self._database.read(organisation) as session:
            row = session.scalars(
                select(ExportRow)
                .where(ExportRow.checkpoint_id == checkpoint_id, ExportRow.sha256 == sha256)
                .limit(1)
            ).first()
        return None if row is None else _export(row)

    def _kept(self, wanted: Wanted, recipe: str) -> Export | None:
        with self._database.read(wanted.organisation) as session:
            row = session.scalars(
                select(ExportRow)
                .where(ExportRow.checkpoint_id == wanted.checkpoint_id, ExportRow.recipe == recipe)
                .limit(1)
            ).first()
        if row is None or self._artifacts.size(row.sha256) != row.size_bytes:
            return None
        return _export(row)

    def _forget(self, recipe: str) -> None:
        with self._lock:
            self._under_way.pop(recipe, None)

    def _make(self, wanted: Wanted, recipe: str) -> Export:
        with (
            self._artifacts.fetched(wanted.sha256, wanted.checkpoint_id) as source,
            tempfile.TemporaryDirectory(dir=self._directory, prefix=PREFIX) as directory,
        ):
            place = Path(directory)
            target = place / "export"
            order = ExportOrder(
                checkpoint_id=wanted.checkpoint_id,
                form=wanted.form,
                source=source.resolve(),
                target=target.resolve(),
                facts=wanted.facts,
            )
            checks = self._run(wanted, place, order)
            with target.open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            received = Received(target, sha256, target.stat().st_size)
            row = ExportRow(
                id=f"export_{secrets.token_hex(8)}",
                checkpoint_id=wanted.checkpoint_id,
                recipe=recipe,
                format=wanted.form,
                sha256=sha256,
                size_bytes=received.size_bytes,
                checks=checks,
                created_at=datetime.now(UTC),
            )
            with (
                self._artifacts.keep(received),
                self._database.write(wanted.organisation) as session,
            ):
                jobs.find_checkpoint(session, wanted.checkpoint_id)  # it may be gone by now
                session.add(row)
            return _export(row)

    def _run(self, wanted: Wanted, place: Path, order: ExportOrder) -> JsonObject:
        order_path, reply_path, log_path = place / "order", place / "reply", place / "log"
        order_path.write_bytes(json.dumps(order.to_json()).encode())
        what = f"the {wanted.form} export of checkpoint {wanted.checkpoint_id!r}"
        with log_path.open("wb") as log:
            child = self._children.start(
                self._command(order_path.resolve(), reply_path.resolve()),
                environment=_VARIABLES,
                output=log,
            )
            try:
                code = child.wait(_SECONDS)
            except subprocess.TimeoutExpired as error:
                raise ServerFailure(
                    f"{what} took longer than {_SECONDS:g} s and was stopped",
                    code="export_failed",
                    retryable=False,
                ) from error
            finally:
                self._children.stop(child, grace=1.0)
        if not reply_path.is_file():
            tail = log_path.read_bytes()[-_TAIL:].decode(errors="replace").strip()
            raise ServerFailure(
                f"{what} ended with {code} and without a reply: {tail.splitlines()[-1:] or ''}",
                code="export_failed",
                retryable=False,
            )
        reply = cast("dict[str, JsonObject]", json.loads(reply_path.read_bytes()))
        if "error" in reply:
            raise _error(reply["error"])
        return reply["checks"]


def _export(row: ExportRow) -> Export:
    return Export(sha256=row.sha256, size_bytes=row.size_bytes, checks=row.checks)


def _error(told: JsonObject) -> Error:
    """The error that the process told, as one of the same class."""
    kind = getattr(rlcore, str(told["type"]), ServerFailure)
    if not (isinstance(kind, type) and issubclass(kind, Error)):
        kind = ServerFailure
    code, hint = told.get("code"), told.get("hint")
    return kind(
        str(told["message"]),
        code=None if code is None else str(code),
        hint=None if hint is None else str(hint),
        retryable=told.get("retryable") is True,
    )
