"""A training job: watch it, wait for it, take its checkpoints."""

from __future__ import annotations

from builtins import list as list_
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rlcore import (
    Deadline,
    EnvironmentIdentity,
    TrainingJobFailed,
)

from rleaas._binding import D, call, stream
from rleaas._drivers.progress import notebook_display
from rleaas._flow import request as build
from rleaas._flow.decode import read_list
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow, Request, Stream
from rleaas.charts.learning_curve import Axis
from rleaas.charts.screen import screen_for_people
from rleaas.models import (
    Event,
    HumanEvalReply,
    HumanEvalStepScore,
    MetricPoint,
    Rollout,
    TrainingJob,
    TrainingResults,
    Webhook,
)
from rleaas.resources import training_routes as routes
from rleaas.resources.best_checkpoint import best_checkpoint
from rleaas.resources.checkpoints import CheckpointResource
from rleaas.resources.handle import Handle
from rleaas.resources.human_eval import human_eval
from rleaas.resources.job_pictures import plot_job, watch_job
from rleaas.resources.job_progress import metrics_of, until_complete
from rleaas.resources.job_streams import follow_job, follow_log
from rleaas.resources.pages import collect_from
from rleaas.resources.references import kinds_of
from rleaas.resources.webhooks import register

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Metrics = dict[str, object]


class TrainingJobResource(Handle[D, TrainingJob]):
    """A training job."""

    @property
    def id(self) -> str:
        """The job's id."""
        return self._record.job_id

    @property
    def job_id(self) -> str:
        """The job's id."""
        return self._record.job_id

    @property
    def status(self) -> str:
        """`pending`, `running`, `completed`, `failed`, `cancelled`, `awaiting_human_eval`."""
        return self._record.status

    @property
    def environment_name(self) -> str | None:
        """The environment it trains on."""
        return self._record.environment_name

    @property
    def environment_version(self) -> int | None:
        """The version of that environment."""
        return self._record.environment_version

    @property
    def contract_digest(self) -> str | None:
        """The digest of that environment's contract."""
        return self._record.contract_digest

    @property
    def identity(self) -> EnvironmentIdentity | None:
        """The environment's name, version and contract digest."""
        return self._record.identity

    @property
    def algorithm(self) -> str | None:
        """What trains."""
        return self._record.algorithm

    @property
    def model(self) -> str | None:
        """The agent that is trained, where one was named."""
        return self._record.model

    @property
    def run_name(self) -> str | None:
        """What the run was called."""
        return self._record.run_name

    @property
    def progress(self) -> int:
        """From 0 to 100, when last heard."""
        return self._record.progress

    @property
    def results(self) -> TrainingResults:
        """What it has reached, when last heard."""
        return self._record.results

    @property
    def error(self) -> str | None:
        """Why it failed."""
        return self._record.reason or None if self._record.status == "failed" else None

    @property
    def started_at(self) -> datetime | None:
        """When its worker began."""
        return self._record.started_at

    @property
    def completed_at(self) -> datetime | None:
        """When it ended."""
        return self._record.completed_at

    def __repr__(self) -> str:
        return (
            f"<TrainingJobResource {self.id} environment={self.environment_name!r} "
            f"status={self.status!r} progress={self.progress}%>"
        )

    @call
    def refresh(self) -> Flow[TrainingJobResource[D]]:
        """Ask the platform for the job as it is now; return this handle.

        Raises:
            TrainingJobNotFound: it was deleted.
        """
        self._record = yield from routes.get(self.id, self._context)
        return self

    @call
    def get_metrics(self) -> Flow[Metrics]:
        """Return how far the job is, as it is now.

        The keys are `job_id`, `status`, `current_episode`, `num_episodes`, `progress`,
        `avg_reward`, `success_rate`, `current_tier` and `results`.
        """
        self._record = yield from routes.get(self.id, self._context)
        return metrics_of(self._record)

    @call
    def list_metrics(self, after: str | int | None = None) -> Flow[list_[MetricPoint]]:
        """Return the points of the job's learning curve, oldest first.

        Args:
            after: a cursor, to get only later points.
        """
        return (yield from routes.curve(self.id, after, self._context))

    @call
    def wait_until_complete(
        self,
        timeout: float | None = 86400,
        poll_interval: float | None = None,
        on_progress: Callable[[Metrics], object] | None = None,
        *,
        progress: bool | None = None,
    ) -> Flow[TrainingJobResource[D]]:
        """Wait until the job is complete, or waits for a human's verdict; return this handle.

        It is looked at at once, so a timeout of 0 asks exactly once.

        Args:
            timeout: seconds; None waits as long as it takes.
            poll_interval: seconds between two looks; by default a quarter, and more as it takes
                longer.
            on_progress: called with what `get_metrics` returns at every look, the last one too;
                what it raises ends the wait.
            progress: show a line on stderr; by default where a person watches it.

        Raises:
            TrainingJobFailed: it failed; the reason is in the error.
            TrainingJobCancelled: it was cancelled.
            PlatformTimeout: it takes longer than the timeout. It goes on.
        """

        def look(deadline: Deadline) -> Flow[TrainingJob]:
            self._record = yield from routes.get(self.id, self._context, deadline)
            return self._record

        def seen(record: TrainingJob) -> None:
            if on_progress is not None:
                on_progress(metrics_of(record))

        yield from until_complete(
            self.id,
            look,
            self._context,
            timeout=timeout,
            interval=poll_interval,
            seen=seen,
            progress=progress,
        )
        return self

    @call
    def list_checkpoints(self) -> Flow[list_[CheckpointResource[D]]]:
        """Return the job's checkpoints, in the order of training."""
        records = yield from routes.checkpoints(self.id, self._context)
        return [CheckpointResource(self._driver, record) for record in records]

    @call
    def get_best_checkpoint(
        self, metric: str = "avg_reward", *, lowest: bool = False
    ) -> Flow[CheckpointResource[D]]:
        """Return the checkpoint with the highest `metric`; of equals, the one trained longest.

        Any figure of the checkpoints will do, such as `success_rate`, `composite_verifier_score` or
        what the algorithm measured; with `lowest`, less is better. Checkpoints without a score do
        not count.

        Raises:
            ConfigurationError: there is no checkpoint, none has a score, or there is no such
                metric.
        """
        records = yield from routes.checkpoints(self.id, self._context)
        best = best_checkpoint(records, metric, lowest=lowest, job_id=self.id)
        return CheckpointResource(self._driver, best)

    @call
    def get_logs(self, limit: int | None = None) -> Flow[list_[str]]:
        """Return the job's log, oldest line first; with `limit`, its last lines."""
        return (yield from routes.logs(self.id, limit, self._context))

    @stream
    def stream_logs(self, poll_interval: float = 0.5, timeout: float | None = 86400) -> Stream[str]:
        """Yield every line of the job's log once, as it is written, until the job is over.

        Args:
            poll_interval: seconds between two questions to a server that neither streams nor waits
                for the next line.
            timeout: seconds; None follows the log as long as the job runs.

        Raises:
            TrainingJobFailed: the job failed; after its last line.
            PlatformTimeout: it takes longer than the timeout. The job goes on.
        """
        yield from follow_log(self.id, poll_interval, timeout, self._context)
        self._record = yield from routes.get(self.id, self._context)
        if self._record.status == "failed":
            raise TrainingJobFailed(self.id, self._record.reason)

    @stream
    def events(
        self, *, kinds: Sequence[str] | None = None, after: int = 0, timeout: float | None = 86400
    ) -> Stream[Event]:
        """Yield what happened to the job and what happens to it, until it is over.

        Args:
            kinds: only events of these kinds, such as `metric`, `checkpoint_saved`.
            after: the `id` of an event to go on after.
            timeout: seconds; None follows it as long as it runs.

        Raises:
            PlatformTimeout: it takes longer than the timeout. The job goes on.
        """

        def seen(record: TrainingJob) -> None:
            self._record = record

        yield from follow_job(self.id, kinds_of(kinds), after, timeout, self._context, seen)

    @call
    def watch(self, timeout: float | None = 86400) -> Flow[TrainingJobResource[D]]:
        """Show the job until it is over, on the terminal or below the cell; return this handle.

        It shows status, episodes, rewards, what the algorithm tells, and the learning curve. How
        the job ended is its `status`; nothing is raised for that. Ctrl-C, and cancelling the task,
        leave the job running and say so. A connection that breaks is made anew.

        Args:
            timeout: seconds; None watches as long as it takes.

        Raises:
            MissingDependencyError: rich or plotext is not installed, for a terminal.
            PlatformTimeout: it takes longer than the timeout. It goes on.
        """
        yield from watch_job(
            self._record,
            timeout,
            screen_for_people(notebook_display()),
            self._context,
            self._take,
        )
        return self

    @call
    def plot(
        self, path: str | Path | None = None, *, window: int | None = None, over: Axis = "episode"
    ) -> Flow[Figure]:
        """Return a figure of the learning curve so far, which a notebook shows.

        Dots are the rewards of episodes, the line is their mean over the last `window` episodes,
        the band one standard deviation of those around it. Success rates and the beginnings of
        tiers are drawn where the training tells them. No display and no `pyplot` is needed.

        Args:
            path: a file to write it to as well, which ends in `.png`, `.svg` or `.pdf`.
            window: how many episodes the mean is over; by default a tenth of them, at most 100.
            over: what is on the axis: `episode`, `timestep` or `wall_seconds`.

        Raises:
            ConfigurationError: no episode has ended yet, or an argument is not usable.
            MissingDependencyError: matplotlib is not installed.
        """
        return (yield from plot_job(self.id, path, window, over, self._context, self._take))

    def _take(self, record: TrainingJob) -> None:
        self._record = record

    @call
    def list_rollouts(self, limit: int | None = None) -> Flow[list_[Rollout]]:
        """Return the rollouts that are stored of the job, newest first.

        Args:
            limit: how many at most; all of them, where nothing is said.
        """
        path = build.path("/api/training/runs/{}/rollouts", self.id)

        def request_at(size: int, place: int) -> Request:
            params = {"limit": size, "offset": place}
            return build.get(path, params, kind=routes.KIND, ref=self.id)

        asking = collect_from(Rollout, request_at, "rollouts", self._context, limit=limit)
        return (yield from asking)

    @call
    def submit_human_eval(
        self,
        decision: str,
        comments: str | None = None,
        step_scores: Sequence[HumanEvalStepScore | Mapping[str, object]] | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> Flow[HumanEvalReply]:
        """Keep a person's verdict on the job; a job that waits for one is complete with it.

        Args:
            decision: `yes` or `no`.
            comments: why.
            step_scores: a word on some steps: `step_index`, and as `score` one of `correct`,
                `flawed`, `critical_error`.
            idempotency_key: with the same key, the verdict is kept once.

        Raises:
            ConfigurationError: it is no verdict; nothing was sent.
        """
        return (
            yield from human_eval(
                self.id, decision, comments, step_scores, idempotency_key, self._context
            )
        )

    @call
    def set_webhook(
        self,
        url: str,
        events: Sequence[str] | None = None,
        *,
        secret: str | None = None,
        idempotency_key: str | None = None,
    ) -> Flow[Webhook]:
        """Let the platform tell a URL what happens to the job; see `client.Webhook.register`."""
        path = build.path("/api/training/jobs/{}/webhook", self.id)
        return (
            yield from register(
                path,
                url,
                events,
                secret,
                idempotency_key,
                self._context,
                kind=routes.KIND,
                ref=self.id,
            )
        )

    @call
    def list_webhooks(self) -> Flow[list_[Webhook]]:
        """Return the webhooks of the job."""
        path = build.path("/api/training/jobs/{}/webhooks", self.id)
        request = build.get(path, kind=routes.KIND, ref=self.id)
        reply = yield from ask(request, self._context)
        return read_list(Webhook, request, reply, "webhooks")[0]

    @call
    def cancel(self) -> Flow[TrainingJob]:
        """Ask the job to end, and return what the platform says to that.

        Raises:
            ConflictError: it has ended otherwise; one that was cancelled is returned as it is.
        """
        return (yield from routes.cancel(self.id, self._context))
