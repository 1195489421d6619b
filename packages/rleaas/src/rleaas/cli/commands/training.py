"""`rleaas train …`: training jobs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer
from rlcore import ConfigurationError

from rleaas.cli.commands.environments import json_object
from rleaas.cli.console import print_facts, print_json, print_table, say, stderr
from rleaas.cli.options import AsJson, BaseUrl, Key, ProfileName, connect

if TYPE_CHECKING:
    from rleaas import Blocking, TrainingJobResource
    from rleaas.models import TrainingJob

app = typer.Typer(no_args_is_help=True, help="Start training jobs and follow them.")

JobId = Annotated[str, typer.Argument(metavar="JOB_ID", help="The job's id.")]
Timeout = Annotated[float, typer.Option(help="Seconds to wait at most; the job goes on.")]
Poll = Annotated[float, typer.Option(min=0.05, help="Seconds between two looks.")]


@app.command("start")
def start(
    environment: Annotated[str, typer.Argument(metavar="ENV", help="The environment's name.")],
    algorithm: Annotated[str, typer.Option(help="This build trains PPO.")] = "PPO",
    episodes: Annotated[int, typer.Option(min=1, help="Episodes to train for.")] = 100,
    max_steps: Annotated[int, typer.Option(min=1, help="Steps of an episode at most.")] = 1000,
    config: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A setting, such as gamma=0.95; may be repeated."),
    ] = None,
    config_json: Annotated[
        str | None, typer.Option(metavar="JSON", help="All settings as one JSON object.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Makes the training repeatable.")] = None,
    name: Annotated[str | None, typer.Option(help="A name for the run.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end.")] = False,
    timeout: Timeout = 86_400.0,
    poll_interval: Poll = 1.0,
    base_url: BaseUrl = None,
    api_key: Key = None,
    profile: ProfileName = None,
    as_json: AsJson = False,
) -> None:
    """Start a training job; with --wait, exit with 1 if it fails or is cancelled."""
    settings = {} if config_json is None else json_object("--config-json", config_json)
    settings |= settings_from(config or [])
    with connect(base_url, api_key, profile) as client:
        job = client.TrainingJob.run(
            environment_name=environment,
            algorithm=algorithm,
            config=settings,
            name=name,
            num_episodes=episodes,
            max_steps=max_steps,
            seed=seed,
        )
        if wait:
            _wait(job, timeout, poll_interval)
        _print_job(job.record, as_json)


@app.command("status")
def status(
    job_id: JobId,
    base_url: BaseUrl = None,
    api_key: Key = None,
    profile: ProfileName = None,
    as_json: AsJson = False,
) -> None:
    """Show how a job is doing."""
    with connect(base_url, api_key, profile) as client:
        _print_job(client.TrainingJob.get(job_id).record, as_json)


@app.command("list")
def list_jobs(
    status: Annotated[str | None, typer.Option(help="Only those in this status.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many.")] = None,
    base_url: BaseUrl = None,
    api_key: Key = None,
    profile: ProfileName = None,
    as_json: AsJson = False,
) -> None:
    """List the training jobs."""
    with connect(base_url, api_key, profile) as client:
        found = [j.record for j in client.TrainingJob.list(status=status, limit=limit)]
    if as_json:
        print_json(found)
        return
    print_table(
        ("job", "status", "environment", "algorithm", "progress", "mean return"),
        [
            (
                job.job_id,
                job.status,
                f"{job.environment_name}@{job.environment_version}",
                job.algorithm,
                f"{job.progress} %",
                job.results.avg_reward,
            )
            for job in found
        ],
        empty="No training jobs. `rleaas train start ENV` starts one.",
    )


@app.command("logs")
def logs(
    job_id: JobId,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the last so many lines.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on until the job ends.")] = False,
    base_url: BaseUrl = None,
    api_key: Key = None,
    profile: ProfileName = None,
    as_json: AsJson = False,
) -> None:
    """Print a job's log; with --follow, exit with 1 if the job fails."""
    if follow and as_json:
        raise ConfigurationError("--follow and --json exclude each other")
    with connect(base_url, api_key, profile) as client:
        job = client.TrainingJob.get(job_id)
        lines: Iterable[str] = job.stream_logs() if follow else job.get_logs(limit=limit)
        if as_json:
            print_json(list(lines))
            return
        for line in lines:
            say(line)


@app.command("metrics")
def metrics(
    job_id: JobId,
    base_url: BaseUrl = None,
    api_key: Key = None,
    profile: ProfileName = None,
    as_json: AsJson = False,
) -> None:
    """Print the job's learning curve, one point per report."""
    with connect(base_url, api_key, profile) as client:
        points = client.TrainingJob.get(job_id).list_metrics()
    if as_json:
        print_json(points)
        return
    print_table(
        ("episode", "steps", "mean return", "success rate", "seconds"),
        [(p.episode, p.timestep, p.avg_reward, p.success_rate, p.wall_seconds) for p in points],
        empty="No metrics yet.",
    )


@app.command("checkpoints")
def checkpoints(
    job_id: JobId,
    base_url: BaseUrl = None,
    api_key: Key = None,
    profile: ProfileName = None,
    as_json: AsJson = False,
) -> None:
    """List the checkpoints that a job has stored."""
    with connect(base_url, api_key, profile) as client:
        found = [c.record for c in client.TrainingJob.get(job_id).list_checkpoints()]
    if as_json:
        print_json(found)
        return
    print_table(
        ("checkpoint", "label", "episode", "steps", "mean return", "bytes", "SHA-256"),
        [
            (
                c.id,
                c.label,
                c.episode,
                c.timestep,
                c.avg_reward,
                c.size_bytes,
                (c.sha256 or "")[:12],
            )
            for c in found
        ],
        empty="No checkpoints yet.",
    )


@app.command("cancel")
def cancel(
    job_id: JobId,
    base_url: BaseUrl = None,
    api_key: Key = None,
    profile: ProfileName = None,
    as_json: AsJson = False,
) -> None:
    """Ask a job to stop."""
    with connect(base_url, api_key, profile) as client:
        answer = client.TrainingJob.cancel(job_id)
    if as_json:
        print_json(answer)
        return
    say(f"asked {job_id} to stop")


@app.command("wait")
def wait(
    job_id: JobId,
    timeout: Timeout = 86_400.0,
    poll_interval: Poll = 1.0,
    base_url: BaseUrl = None,
    api_key: Key = None,
    profile: ProfileName = None,
    as_json: AsJson = False,
) -> None:
    """Wait until a job is complete; exit with 1 if it fails, is cancelled or takes too long."""
    with connect(base_url, api_key, profile) as client:
        job = client.TrainingJob.get(job_id)
        _wait(job, timeout, poll_interval)
        _print_job(job.record, as_json)


def settings_from(pairs: list[str]) -> dict[str, object]:
    """Read KEY=VALUE settings; a value that is JSON is taken as such, any other as text.

    Raises:
        ConfigurationError: a pair has no key or no `=`.
    """
    settings: dict[str, object] = {}
    for pair in pairs:
        key, separator, text = pair.partition("=")
        if not separator or not key:
            raise ConfigurationError(
                f"--config {pair!r} is not KEY=VALUE", hint="Write it as gamma=0.95."
            )
        try:
            settings[key] = json.loads(text)
        except ValueError:
            settings[key] = text
    return settings


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _wait(job: TrainingJobResource[Blocking], timeout: float, poll_interval: float) -> None:
    from rleaas.quickstart.shown import Shown

    with Shown(stderr()).bar(f"job {job.job_id}", 100) as bar:
        job.wait_until_complete(
            timeout=timeout,
            poll_interval=poll_interval,
            on_progress=lambda seen: bar.show(_whole(seen["progress"]), str(seen["status"])),
            progress=False,
        )


def _print_job(job: TrainingJob, as_json: bool) -> None:
    if as_json:
        print_json(job)
        return
    print_facts(
        {
            "job": job.job_id,
            "status": job.status,
            "error": job.error,
            "environment": f"{job.environment_name}@{job.environment_version}",
            "digest": job.contract_digest,
            "algorithm": job.algorithm,
            "run": job.run_name,
            "episodes": f"{job.current_episode or 0} of {job.num_episodes}",
            "progress": f"{job.progress} %",
            "mean return": job.results.avg_reward,
            "started": job.started_at,
            "ended": job.completed_at,
        }
    )
