"""The files that have the steps of rollouts: taken from workers, and read again."""

import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, cast

from rlcore import CheckpointCorrupted, InvalidRequestError, RolloutsUnreadable
from sqlalchemy import select
from sqlalchemy.orm import Session

from rleaas.evaluation.rollouts import RolloutReader, RolloutRecord, RolloutWriter
from rleaas.server.artifacts.incoming import Received
from rleaas.server.artifacts.store import ArtifactStore
from rleaas.server.domain_metrics import Metrics
from rleaas.server.rollout_masking import masked_rollout
from rleaas.server.rules.json_values import problem_with
from rleaas.server.rules.report_facts import is_episode, problem_in
from rleaas.server.store import rollouts
from rleaas.server.store.tables import JobRow, JsonObject, RolloutRow
from rleaas.training.file_digest import file_digest

KIND: Final = "rollouts"


class RolloutFiles:
    """Reads the steps of rollouts out of the artifacts."""

    def __init__(self, artifacts: ArtifactStore) -> None:
        self._artifacts = artifacts

    def of_row(self, row: RolloutRow) -> RolloutRecord | None:
        """The rollout with its steps; None where nothing but its figures was kept.

        Raises:
            RolloutsUnreadable: its file is not what was stored.
            ServerFailure: its file is gone.
        """
        return next(self.of_rows([row]))

    def of_rows(self, rows: Sequence[RolloutRow]) -> Iterator[RolloutRecord | None]:
        """The same of each of these rows, in their order; each file is opened once in a run of it.

        Raises:
            RolloutsUnreadable: a file is not what was stored.
            ServerFailure: a file is gone.
        """
        begin = 0
        while begin < len(rows):
            digest, end = rows[begin].file_sha256, begin
            while end < len(rows) and rows[end].file_sha256 == digest:
                end += 1
            if digest is None:
                yield from [None] * (end - begin)
            else:
                with self.fetched(digest) as path, RolloutReader(path, name=digest) as reader:
                    yield from _at(reader, [row.file_place for row in rows[begin:end]], digest)
            begin = end

    @contextmanager
    def fetched(self, sha256: str) -> Generator[Path]:
        """A file on this machine, as long as the block lasts; its bytes were checked just now.

        Raises:
            RolloutsUnreadable: it is not what was stored.
            ServerFailure: it is gone.
        """
        with ExitStack() as kept:
            try:
                path = kept.enter_context(self._artifacts.fetched(sha256, f"rollouts {sha256}"))
            except CheckpointCorrupted as error:
                reason = f"its bytes are those of {error.actual}"
                raise RolloutsUnreadable(sha256, reason) from error
            yield path


def _at(
    reader: RolloutReader, places: Sequence[int | None], digest: str
) -> Iterator[RolloutRecord]:
    """Those at these places; a run of places that follow each other is read at once."""
    begin = 0
    while begin < len(places):
        first, end = places[begin] or 0, begin + 1
        while end < len(places) and places[end] == first + end - begin:
            end += 1
        found = reader.page(first, end - begin)
        if len(found) != end - begin:
            raise RolloutsUnreadable(digest, f"it ends before place {first + end - begin - 1}")
        yield from found
        begin = end


@contextmanager
def looked_at(
    received: Received, name: str, hidden: Sequence[str], metrics: Metrics | None = None
) -> Generator[tuple[Received, list[JsonObject]]]:
    """Look at a file of a worker; gives the file to keep, and its episodes without their steps.

    Args:
        received: the file.
        name: how messages call it.
        hidden: the fields that governance hides; where there are any, the file to keep is another,
            without them.
        metrics: what tells how each episode did in its domain, before anything is hidden.

    Raises:
        InvalidRequestError: it is no file of rollouts, or says what cannot be.
    """
    with tempfile.TemporaryDirectory(dir=received.path.parent, prefix=".incoming-") as directory:
        kept = received
        try:
            told = list(_summaries(received.path, name, metrics))
            if hidden:
                path = Path(directory) / KIND
                _mask(received.path, path, name, hidden)
                kept = Received(path, file_digest(path), path.stat().st_size)
        except RolloutsUnreadable as error:
            raise InvalidRequestError(
                str(error), status_code=422, code=error.code, hint="Write it with RolloutWriter"
            ) from error
        yield kept, told


def index(session: Session, job: JobRow, sha256: str, told: Sequence[JsonObject]) -> int:
    """Note where each episode of a file is; returns how many there are."""
    known = session.execute(
        select(RolloutRow.id, RolloutRow.data).where(RolloutRow.job_id == job.id)
    )
    said_of: dict[str, JsonObject] = {row.id: row.data for row in known}
    # The file is the last word, and reports say more than it has.
    whole = [
        {**said_of.get(rollouts.id_of(job.id, cast("int", one["index"])), {}), **one}
        for one in told
    ]
    return len(rollouts.add_episodes(session, job, whole, sha256))


def _mask(source: Path, target: Path, name: str, hidden: Sequence[str]) -> None:
    with RolloutReader(source, name=name) as reader, RolloutWriter(target) as writer:
        for record in reader:
            writer.add(masked_rollout(record, hidden))


def _summaries(path: Path, name: str, metrics: Metrics | None) -> Iterator[JsonObject]:
    """Read everything once, so that nothing that is kept fails when somebody asks for it."""
    ids: set[str] = set()
    indices: set[int] = set()
    with RolloutReader(path, name=name) as reader:
        for record in reader:
            if record.id in ids or record.index in indices:
                raise RolloutsUnreadable(name, f"it has {record.id!r}, {record.index}, twice")
            ids.add(record.id)
            indices.add(record.index)
            told: JsonObject = {**record.summary(), "steps": len(record.steps)}
            problem = (
                problem_with(told)
                or problem_in("episode", told)
                or problem_with([step.to_json() for step in record.steps])
            )
            if problem is not None or not is_episode(told):
                raise RolloutsUnreadable(name, f"episode {record.index}: {problem}")
            if metrics is not None:
                told["domain_metrics"] = dict(metrics(record))
            # The server has its own names for them, and the file has the state.
            del told["id"], told["state"]
            yield told
