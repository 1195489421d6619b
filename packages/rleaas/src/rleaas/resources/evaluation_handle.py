"""An evaluation: wait for it, read its report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from rlcore import Deadline, EnvironmentIdentity, EvaluationCancelled, EvaluationFailed

from rleaas._binding import D, call, stream
from rleaas._flow.wire import Flow, Stream
from rleaas.models import (
    Evaluation,
    EvaluationReport,
    Event,
    HumanAgreement,
    HumanEvalStepScore,
    HumanVerdict,
)
from rleaas.resources import evaluation_judging as judging
from rleaas.resources import evaluation_routes as routes
from rleaas.resources.evaluation_progress import follow, until_ended
from rleaas.resources.handle import Handle
from rleaas.resources.references import kinds_of


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
        self._record = yield from routes.get(self.id, self._context)
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
            self._record = yield from routes.get(self.id, self._context, deadline)
            return self._record

        ended = yield from until_ended(
            self.id,
            self._context,
            timeout=timeout,
            interval=poll_interval,
            look=look,
            seen=on_progress,
            progress=progress,
        )
        if ended.failed_outright:
            raise EvaluationFailed(self.id, ended.reason)
        if ended.status == "cancelled":
            raise EvaluationCancelled(self.id)
        return (yield from routes.report(self.id, self._context))

    @call
    def get_report(self) -> Flow[EvaluationReport]:
        """Return the report as far as it has come; partial while the evaluation runs."""
        return (yield from routes.report(self.id, self._context))

    @call
    def submit_human_eval(
        self,
        episode: int,
        *,
        passed: bool,
        score: float | None = None,
        comments: str | None = None,
        step_scores: Sequence[HumanEvalStepScore | Mapping[str, object]] | None = None,
        rater: str | None = None,
        idempotency_key: str | None = None,
    ) -> Flow[HumanVerdict]:
        """Keep what a person says of an episode, beside what verifiers said; return it.

        Args:
            episode: its number in the report.
            passed: whether it is good enough.
            score: how good, from 0 to 1.
            comments: why.
            step_scores: words on single steps: `correct`, `flawed` or `critical_error`.
            rater: who says so; by default whoever the key is of. What the same rater says later
                of the same episode counts instead.
            idempotency_key: with the same key it is kept once.

        Raises:
            ConfigurationError: the evaluation has no such episode.
        """
        asking = judging.judge(
            self.id,
            episode,
            passed,
            score,
            comments,
            step_scores,
            rater,
            idempotency_key,
            self._context,
        )
        return (yield from asking)

    @call
    def list_human_evals(self) -> Flow[list[HumanVerdict]]:
        """Return what people say now of its episodes."""
        return (yield from judging.human_verdicts(self.id, self._context))

    @call
    def get_agreement(self) -> Flow[HumanAgreement]:
        """Return how far people and verifiers say the same: Cohen's kappa, with its interval."""
        return (yield from judging.agreement(self.id, self._context))

    @stream
    def events(
        self,
        kinds: Sequence[str] | None = None,
        *,
        after: int = 0,
        timeout: float | None = None,
    ) -> Stream[Event]:
        """Yield what happens to the evaluation, from its beginning on, until it is over.

        Args:
            kinds: only events of these kinds, such as `episode`.
            after: the id of an event; only those after it.
            timeout: seconds; None follows as long as it takes.

        Raises:
            PlatformTimeout: it is not over within the timeout. It goes on.
        """
        yield from follow(self.id, kinds_of(kinds), after, timeout, self._context)

    @call
    def cancel(self) -> Flow[EvaluationJobResource[D]]:
        """Ask the evaluation to end; the episodes it has finished stay. Returns this handle.

        Raises:
            ConflictError: it has ended otherwise; one that was cancelled is returned as it is.
        """
        self._record = yield from routes.cancel(self.id, self._context)
        return self
