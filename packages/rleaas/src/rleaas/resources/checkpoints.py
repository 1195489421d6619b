"""Checkpoints: find them, download them, load them."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlcore import CheckpointCorrupted, EnvironmentIdentity, UnexpectedReply

from rleaas._binding import D, Resource, call
from rleaas._flow import request as build
from rleaas._flow.context import Context
from rleaas._flow.decode import read
from rleaas._flow.retry import ask, fetch
from rleaas._flow.wire import Flow, Save, work
from rleaas.models import Checkpoint
from rleaas.resources.handle import Handle
from rleaas.resources.references import IdRef, id_of

if TYPE_CHECKING:
    import rlmesh.numpy

KIND = "checkpoint"


CheckpointRef = IdRef
"""A checkpoint by its id, or itself."""


class CheckpointResource(Handle[D, Checkpoint]):
    """A policy as it was at some episode of a training job."""

    @property
    def id(self) -> str:
        """The checkpoint's id."""
        return self._record.id

    @property
    def job_id(self) -> str | None:
        """The training job that it comes from."""
        return self._record.job_id

    @property
    def episode(self) -> int | None:
        """The episode after which it was saved."""
        return self._record.episode

    @property
    def timestep(self) -> int | None:
        """The environment steps until then."""
        return self._record.timestep

    @property
    def label(self) -> str | None:
        """What it was labelled."""
        return self._record.label

    @property
    def avg_reward(self) -> float | None:
        """The mean return of the episodes before it; None where it was not scored."""
        return self._record.avg_reward

    @property
    def success_rate(self) -> float | None:
        """The share of successes among them; None where nothing tells success."""
        return self._record.success_rate

    @property
    def algorithm(self) -> str | None:
        """What trained it."""
        return self._record.algorithm

    @property
    def metrics(self) -> dict[str, object]:
        """Every figure that is known of it, by name."""
        return self._record.metrics

    @property
    def card(self) -> dict[str, object]:
        """What made it: family, hyper-parameters, seeds, versions of packages.

        Empty where it came with the record of its job; `job.list_checkpoints()` and
        `client.Checkpoint.get(checkpoint)` have it.
        """
        return self._record.card

    @property
    def has_state(self) -> bool:
        """Whether a training can go on from it exactly, with optimiser and random states."""
        return self._record.state_sha256 is not None

    @property
    def sha256(self) -> str | None:
        """The SHA-256 of its file."""
        return self._record.sha256

    @property
    def size_bytes(self) -> int | None:
        """The size of its file."""
        return self._record.size_bytes

    @property
    def created_at(self) -> datetime | None:
        """When it was saved."""
        return self._record.created_at

    @property
    def identity(self) -> EnvironmentIdentity | None:
        """The environment it was trained on."""
        return self._record.identity

    def __repr__(self) -> str:
        return (
            f"<CheckpointResource {self.id} episode={self.episode} avg_reward={self.avg_reward!r}>"
        )

    @call
    def download(self, path: str | Path) -> Flow[Path]:
        """Save the checkpoint's file at `path` and return the path.

        The file appears there only when it is complete and its SHA-256 is the one on record.

        Raises:
            CheckpointCorrupted: the platform sent other bytes.
            CheckpointNotFound: the checkpoint was deleted.
        """
        record = yield from _with_digest(self._record, self._context)
        return (yield from _save(record, Path(path), self._context))

    @call
    def load(self) -> Flow[rlmesh.numpy.Model[Any, Any]]:
        """Return the policy as a model that `rlmesh.run` takes.

        The file is fetched once and kept; its SHA-256 is checked each time before it is read.

        Raises:
            CheckpointCorrupted: the platform sent other bytes than those on record.
            MissingDependencyError: the extra `rleaas[train]` is not installed.
        """
        # Policies belong to the other plane, which this one needs only here.
        from rleaas.mesh import checkpoint_cache as cache

        record = yield from _with_digest(self._record, self._context)
        self._record = record
        path = cache.place(record)
        if not (yield from work(lambda: cache.holds(path, record))):
            yield from _save(record, path, self._context)
        return (yield from work(lambda: cache.load(path, record)))


class CheckpointsClient(Resource[D]):
    """The checkpoints of the platform; a job's own are listed by its handle."""

    @call
    def get(self, checkpoint_id: CheckpointRef) -> Flow[CheckpointResource[D]]:
        """Return the handle of the checkpoint with this id.

        Raises:
            CheckpointNotFound: there is none.
        """
        record = yield from _get(checkpoint_reference(checkpoint_id), self._context)
        return CheckpointResource(self._driver, record)


def checkpoint_reference(checkpoint: CheckpointRef) -> str:
    """Return the checkpoint's id.

    Raises:
        ConfigurationError: it is empty.
    """
    return id_of(checkpoint, KIND)


def _get(checkpoint_id: str, context: Context) -> Flow[Checkpoint]:
    request = build.get(
        build.path("/api/checkpoints/{}", checkpoint_id, what="checkpoint id"),
        kind=KIND,
        ref=checkpoint_id,
    )
    reply = yield from ask(request, context)
    return read(Checkpoint, request, reply)


def _with_digest(record: Checkpoint, context: Context) -> Flow[Checkpoint]:
    if record.sha256 is not None:
        return record
    full = yield from _get(record.id, context)
    if full.sha256 is None:
        raise UnexpectedReply(
            f"the platform has no SHA-256 of checkpoint {record.id!r}, so its file cannot be "
            "verified",
            hint="Use a server that records digests of checkpoints.",
        )
    return full


def _save(record: Checkpoint, target: Path, context: Context) -> Flow[Path]:
    expected = record.sha256 or ""
    request = build.get(
        build.path("/api/checkpoints/{}/file", record.id, what="checkpoint id"),
        kind=KIND,
        ref=record.id,
    )
    saved = yield from fetch(Save(request, target, expected), context)
    if saved.sha256 != expected:
        raise CheckpointCorrupted(
            record.id,
            expected,
            saved.sha256,
            hint="Nothing was kept. Load another checkpoint of the job.",
            request_id=saved.reply.request_id,
        )
    return target
