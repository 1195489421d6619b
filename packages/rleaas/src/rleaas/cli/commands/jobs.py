"""`rleaas job …`: training jobs, one at a time."""

from __future__ import annotations

from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from rleaas.cli.command import Asked, command
from rleaas.cli.console import Column, columns, say, stderr
from rleaas.cli.failures import AWAITS_VERDICT
from rleaas.cli.nouns import noun
from rleaas.cli.options import Limit
from rleaas.cli.references import Env, JobRef
from rleaas.cli.spec import json_objects, optional_object, settings_from

if TYPE_CHECKING:
    from rleaas import Blocking, TrainingJobResource
    from rleaas.charts.learning_curve import Axis

app = noun("job")

_DAY = 86_400.0
SHOWN = (
    Column("job", "job_id"),
    *columns("status", "error"),
    Column("environment", lambda one: f"{one.environment_name}@{one.environment_version}"),
    Column("digest", "contract_digest"),
    *columns("algorithm"),
    Column("agent", "model"),
    Column("run", "run_name"),
    Column("episodes", lambda one: f"{one.current_episode or 0} of {one.num_episodes}"),
    Column("progress", lambda one: f"{one.progress} %"),
    Column("mean return", lambda one: one.results.avg_reward),
    Column("started", "started_at"),
    Column("ended", "completed_at"),
)

Timeout = Annotated[float, typer.Option(min=0, help="Seconds to wait at most; the job goes on.")]
Poll = Annotated[float, typer.Option(min=0.05, help="Seconds between two looks.")]


@command(
    app,
    "start",
    "start MyCartPole --episodes 300 --config gamma=0.98 --wait",
    "start Bank@3 --seed 7 --resume-from ckpt_1",
)
def start(
    asked: Asked,
    environment: Env,
    algorithm: Annotated[
        str | None, typer.Option(help="What trains; PPO when the config does not say either.")
    ] = None,
    episodes: Annotated[int, typer.Option(min=1, help="Episodes to train for.")] = 100,
    max_steps: Annotated[int, typer.Option(min=1, help="Steps of an episode at most.")] = 1000,
    config: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A setting, such as gamma=0.95; may be repeated."),
    ] = None,
    config_json: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="All settings as one JSON object; @FILE reads it."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Makes the training repeatable.")] = None,
    name: Annotated[str | None, typer.Option(help="A name for the run.")] = None,
    agent: Annotated[
        str | None,
        typer.Option(metavar="AGENT", help="Start from the latest checkpoint of this agent."),
    ] = None,
    resume_from: Annotated[
        str | None, typer.Option(metavar="CHECKPOINT_ID", help="Go on from this checkpoint.")
    ] = None,
    version: Annotated[
        int | None, typer.Option(min=1, help="An older version of the environment.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end.")] = False,
    timeout: Timeout = _DAY,
    poll_interval: Poll = 1.0,
) -> int:
    """Start a training job; with --wait, exit as `rleaas job wait` does."""
    settings = optional_object("--config-json", config_json) or {}
    settings |= settings_from("--config", config)
    run = asked.client.TrainingJob.run
    job = (run if algorithm is None else partial(run, algorithm=algorithm))(
        environment_name=environment,
        config=settings,
        name=name,
        agent_id=agent,
        resume_from_checkpoint=resume_from,
        num_episodes=episodes,
        max_steps=max_steps,
        seed=seed,
        environment_version=version,
    )
    code = _wait(job, timeout, poll_interval) if wait else 0
    asked.facts(job, SHOWN)
    return code


def _show(asked: Asked, job_id: JobRef) -> None:
    """Show how a job is doing."""
    asked.facts(asked.client.TrainingJob.get(job_id), SHOWN)


command(app, "get", "get job_1 --json")(_show)
command(app, "status", "status job_1")(_show)


@command(app, "list", "list --status running --limit 20")
def list_jobs(
    asked: Asked,
    status: Annotated[str | None, typer.Option(help="Only those in this status.")] = None,
    limit: Limit = None,
) -> None:
    """List the training jobs, newest first."""
    asked.rows(
        asked.client.TrainingJob.list(status=status, limit=limit),
        (
            Column("job", "job_id"),
            *columns("status"),
            Column("environment", lambda one: f"{one.environment_name}@{one.environment_version}"),
            *columns("algorithm"),
            Column("progress", lambda one: f"{one.progress} %"),
            Column("mean return", lambda one: one.results.avg_reward),
        ),
        empty="No training jobs. `rleaas job start ENV` starts one.",
    )


@command(app, "queue", "queue")
def queue(asked: Asked) -> None:
    """List the jobs that wait, in the order of their turns; --json says how many run, too."""
    found = asked.client.TrainingJob.queue()
    if asked.as_json:
        asked.facts(found, ())
        return
    places = "" if found.max_jobs is None else f" of {found.max_jobs}"
    asked.rows(
        found.queue,
        (
            Column("job", "job_id"),
            *columns("position", "priority"),
            Column("waiting since", "waiting_since"),
            Column("not before", "not_before"),
        ),
        empty=f"No training job waits; running: {found.running}{places}.",
    )


@command(app, "logs", "logs job_1 --limit 50", "logs job_1 --follow")
def logs(
    asked: Asked,
    job_id: JobRef,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the last so many lines.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on until the job ends.")] = False,
) -> None:
    """Print a job's log; with --follow, exit with 8 if the job fails.

    With --follow, --limit says how many of the lines that are there already come first. With
    --json, each line is then a JSON string on a line of its own.
    """
    job = asked.client.TrainingJob.get(job_id)
    if follow:
        skipped = 0 if limit is None else max(0, len(job.get_logs()) - limit)
        asked.stream(islice(job.stream_logs(), skipped, None), str)
        return
    lines = job.get_logs(limit=limit)
    if asked.as_json:
        asked.rows(lines, (), empty="")
        return
    for line in lines:
        say(line)


@command(app, "events", "events job_1 --follow --json", "events job_1 --kind checkpoint_saved")
def events(
    asked: Asked,
    job_id: JobRef,
    kind: Annotated[list[str] | None, typer.Option(help="Only this kind; repeatable.")] = None,
    after: Annotated[int, typer.Option(min=0, help="Begin after the event with this id.")] = 0,
    follow: Annotated[bool, typer.Option("--follow", help="Go on until the job ends.")] = False,
    timeout: Timeout = _DAY,
) -> None:
    """Print what happened to a job, one event per line; --json makes each a JSON object."""
    from rleaas.cli.commands.events import told

    job = asked.client.TrainingJob.get(job_id)
    limit = timeout if follow else 0.0
    asked.stream(job.events(kinds=kind, after=after, timeout=limit), told)


@command(app, "metrics", "metrics job_1 --json")
def metrics(asked: Asked, job_id: JobRef) -> None:
    """Print the job's learning curve, one point per report."""
    asked.rows(
        asked.client.TrainingJob.get(job_id).list_metrics(),
        (
            *columns("episode"),
            Column("steps", "timestep"),
            Column("mean return", "avg_reward"),
            Column("success rate", "success_rate"),
            Column("seconds", "wall_seconds"),
        ),
        empty="No metrics yet.",
    )


@command(app, "checkpoints", "checkpoints job_1")
def checkpoints(asked: Asked, job_id: JobRef) -> None:
    """List the checkpoints that a job has stored."""
    asked.rows(
        asked.client.TrainingJob.get(job_id).list_checkpoints(),
        (
            Column("checkpoint", "id"),
            *columns("label", "episode"),
            Column("steps", "timestep"),
            Column("mean return", "avg_reward"),
            Column("bytes", "size_bytes"),
            Column("SHA-256", lambda one: (one.sha256 or "")[:12]),
        ),
        empty="No checkpoints yet.",
    )


@command(app, "rollouts", "rollouts job_1", "rollouts job_1 --limit 20")
def rollouts(asked: Asked, job_id: JobRef, limit: Limit = None) -> None:
    """List the rollouts that are stored of a job, newest first."""
    asked.rows(
        asked.client.TrainingJob.get(job_id).list_rollouts(limit),
        columns("id", "status", "score", "total steps", "success", "created at"),
        empty="No rollouts.",
    )


@command(app, "cancel", "cancel job_1")
def cancel(asked: Asked, job_id: JobRef) -> None:
    """Ask a job to stop."""
    asked.done(asked.client.TrainingJob.cancel(job_id), f"asked {job_id} to stop")


@command(app, "wait", "wait job_1 --timeout 3600")
def wait(asked: Asked, job_id: JobRef, timeout: Timeout = _DAY, poll_interval: Poll = 1.0) -> int:
    """Wait until a job is complete.

    Exit with 8 if it fails, 9 if it takes too long, 6 if it is cancelled, 7 if it waits for a
    verdict.
    """
    job = asked.client.TrainingJob.get(job_id)
    code = _wait(job, timeout, poll_interval)
    asked.facts(job, SHOWN)
    return code


@command(app, "watch", "watch job_1")
def watch(asked: Asked, job_id: JobRef, timeout: Timeout = _DAY) -> None:
    """Show a job's numbers and its learning curve until it is over; Ctrl-C leaves it running."""
    job = asked.client.TrainingJob.get(job_id)
    if asked.as_json:
        asked.stream(job.events(timeout=timeout), str)
        return
    job.watch(timeout=timeout)


@command(app, "plot", "plot job_1 curve.png", "plot job_1 curve.svg --over timestep --window 20")
def plot(
    asked: Asked,
    job_id: JobRef,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .png, .svg or .pdf file.")],
    window: Annotated[
        int | None, typer.Option(min=1, help="Episodes that the running mean is over.")
    ] = None,
    over: Annotated[
        str, typer.Option(help="The axis: episode, timestep or wall_seconds.")
    ] = "episode",
) -> None:
    """Draw a job's learning curve into a file, as far as it has come."""
    # A wrong word is refused by the call itself, with those that there are.
    axis = cast("Axis", over)
    asked.client.TrainingJob.get(job_id).plot(file, window=window, over=axis)
    asked.done({"file": str(file)}, f"wrote {file}")


@command(app, "verdict", "verdict job_1 yes --comments 'Good enough'")
def verdict(
    asked: Asked,
    job_id: JobRef,
    decision: Annotated[str, typer.Argument(metavar="yes|no", help="The verdict.")],
    comments: Annotated[str | None, typer.Option(help="Why.")] = None,
    step_scores: Annotated[
        str | None,
        typer.Option(
            metavar="JSON",
            help="A list of step_index and score: correct, flawed or critical_error.",
        ),
    ] = None,
) -> None:
    """Keep a person's verdict on a job; a job that waits for one is complete with it."""
    scores = None if step_scores is None else json_objects("--step-scores", step_scores)
    reply = asked.client.TrainingJob.get(job_id).submit_human_eval(decision, comments, scores)
    asked.done(reply, f"kept {decision!r} for {job_id}")


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _wait(job: TrainingJobResource[Blocking], timeout: float, poll_interval: float) -> int:
    from rleaas.quickstart.shown import Shown

    with Shown(stderr()).bar(f"job {job.job_id}", 100) as bar:
        job.wait_until_complete(
            timeout=timeout,
            poll_interval=poll_interval,
            on_progress=lambda seen: bar.show(_whole(seen["progress"]), str(seen["status"])),
            progress=False,
        )
    return AWAITS_VERDICT if job.status == "awaiting_human_eval" else 0
