"""An evaluation: wait for it, read its report."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from rlcore import Deadline, EnvironmentIdentity, EvaluationCancelled, EvaluationFailed

from rleaas._binding import D, call
from rleaas._flow import request as build
from rleaas._flow.context import Context
from rleaas._flow.decode import read
from rleaas._flow.poll import Wait, wait
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow
from rleaas.models import Evaluation, EvaluationReport
from rleaas.resources.handle import Handle

KIND = "evaluation"


class EvaluationJobResource(Handle[D, Evaluation]):
    """An evaluation of a checkpoint."""

    @property
    def id(self) -> str:
        """The evaluation's id."""
        return self._record.id

    @property
    def name(self) -> str | None:
        """What it was called."""
        return self._record.name

    @property
    def status(self) -> str:
        """`pending`, `running`, `completed`, `failed` or `cancelled`, when last heard."""
        return self._record.status

    @property
    def environment(self) -> str | None:
        """The environment it runs on."""
        return self._record.environment

    @property
    def identity(self) -> EnvironmentIdentity | None:
        """That environment's name, version and contract digest."""
        return self._record.identity

    @property
    def agent_checkpoint_id(self) -> str | None:
        """The checkpoint that is evaluated."""
        return self._record.agent_checkpoint_id

    @property
    def seeds(self) -> list[int]:
        """The seeds of its episodes."""
        return self._record.seeds

    @property
    def episodes_done(self) -> int:
        """How many episodes are over, when last heard."""
        return self._record.episodes_done

    @property
    def created_at(self) -> datetime | None:
        """When it was asked for."""
        return self._record.created_at

    def __repr__(self) -> str:
        return (
            f"<EvaluationJobResource {self.id} environment={self.environment!r} "
            f"status={self.status!r}>"
        )

    @call
    def refresh(self) -> Flow[EvaluationJobResource[D]]:
        """Ask the platform for the evaluation as it is now; return this handle.

        Raises:
            EvaluationNotFound: it was deleted.
        """
        self._record = yield from get(self.id, self._context)
        return self

    @call
    def wait_until_complete(
        self,
        timeout: float | None = 3600.0,
        poll_interval: float | None = None,
        *,
        on_progress: Callable[[Evaluation], object] | None = None,
        progress: bool | None = None,
    ) -> Flow[EvaluationReport]:
        """Wait until the evaluation is complete and return its report.

        It is looked at at once, so a timeout of 0 asks exactly once.

        Args:
            timeout: seconds; None waits as long as it takes.
            poll_interval: seconds between two looks; by default a quarter, and more as it takes
                longer.
            on_progress: called with every record; what it raises ends the wait.
            progress: show a line on stderr; by default where a person watches it.

        Raises:
            EvaluationFailed: it failed; the reason is in the error.
            EvaluationCancelled: it was cancelled. `get_report` has what was found until then.
            PlatformTimeout: it takes longer than the timeout. It goes on.
        """

        def look(deadline: Deadline) -> Flow[Evaluation]:
            self._record = yield from get(self.id, self._context, deadline)
            return self._record

        ended = yield from wait(
            Wait(
                what=f"evaluation {self.id!r}",
                look=look,
                finished=lambda record: record.finished,
                status=lambda record: record.status,
                describe=describe,
                fraction=done,
                timeout=timeout,
                interval=poll_interval,
                seen=on_progress,
                progress=progress,
            ),
            self._context,
        )
        if ended.failed_outright:
            raise EvaluationFailed(self.id, ended.reason)
        if ended.status == "cancelled":
            raise EvaluationCancelled(self.id)
        return (yield from report(self.id, self._context))

    @call
    def get_report(self) -> Flow[EvaluationReport]:
        """Return the report as far as it has come; partial while the evaluation runs."""
        return (yield from report(self.id, self._context))

    @call
    def cancel(self) -> Flow[EvaluationJobResource[D]]:
        """Ask the evaluation to end; the episodes it has finished stay. Returns this handle.

        Raises:
            ConflictError: it has ended already.
        """
        self._record = yield from cancel(self.id, self._context)
        return self


def describe(record: Evaluation) -> str:
    """Return how far an evaluation is, for a person."""
    total = len(record.seeds)
    return f"{record.status} · episode {record.episodes_done}" + (f"/{total}" if total else "")


def done(record: Evaluation) -> float | None:
    """Return how much of an evaluation is done, from 0 to 1."""
    return record.episodes_done / len(record.seeds) if record.seeds else None


def get(evaluation_id: str, context: Context, deadline: Deadline | None = None) -> Flow[Evaluation]:
    """Return the evaluation's record."""
    request = build.get(_path("/api/evaluations/{}", evaluation_id), kind=KIND, ref=evaluation_id)
    reply = yield from ask(request, context, deadline)
    return read(Evaluation, request, reply)


def report(evaluation_id: str, context: Context) -> Flow[EvaluationReport]:
    """Return the evaluation's report."""
    request = build.get(
        _path("/api/evaluations/{}/report", evaluation_id), kind=KIND, ref=evaluation_id
    )
    reply = yield from ask(request, context)
    return read(EvaluationReport, request, reply)


def cancel(evaluation_id: str, context: Context) -> Flow[Evaluation]:
    """Ask the evaluation to end."""
    request = build.post(
        _path("/api/evaluations/{}/cancel", evaluation_id),
        key=context.new_key(),
        kind=KIND,
        ref=evaluation_id,
    )
    reply = yield from ask(request, context)
    return read(Evaluation, request, reply)


def _path(template: str, evaluation_id: str) -> str:
    return build.path(template, evaluation_id, what="evaluation id")
