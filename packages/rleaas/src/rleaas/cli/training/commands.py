"""The commands about jobs that are there already."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from rleaas.cli.failures import AWAITS_VERDICT
from rleaas.cli.plain import print_json, print_json_line, record_of, say

if TYPE_CHECKING:
    from rleaas import Blocking, Client, TrainingJobResource

Command = Callable[[argparse.Namespace, "Client"], int]


def status(told: argparse.Namespace, client: Client) -> int:
    """Print how a job is doing."""
    job = client.TrainingJob.get(told.job_id)
    if told.as_json:
        print_json(record_of(job))
        return 0
    say(f"job_id: {job.id}")
    say(f"status: {job.status}")
    say(f"environment: {job.environment_name or ''}")
    say(f"progress: {job.progress}")
    if job.run_name:
        say(f"run_name: {job.run_name}")
    if job.algorithm:
        say(f"algorithm: {job.algorithm}")
    if job.error:
        say(f"error: {job.error}")
    return 0


def list_jobs(told: argparse.Namespace, client: Client) -> int:
    """Print a line for each job, newest first."""
    jobs = client.TrainingJob.list()
    if told.as_json:
        print_json([job.id if told.ids_only else record_of(job) for job in jobs])
        return 0
    if not jobs:
        say("No training jobs found.")
    for job in jobs:
        if told.ids_only:
            say(job.id)
            continue
        say(
            f"{job.id} | status={job.status} | env={job.environment_name or '-'} | "
            f"algorithm={job.algorithm or '-'} | progress={job.progress}"
        )
    return 0


def cancel(told: argparse.Namespace, client: Client) -> int:
    """Ask a job to stop."""
    answer = client.TrainingJob.cancel(told.job_id)
    if told.as_json:
        print_json(answer)
        return 0
    say(f"Cancel request sent for {told.job_id}")
    say(f"status: {answer.status}")
    return 0


def wait(told: argparse.Namespace, client: Client) -> int:
    """Wait for a job's end; the caller learns by the code how that was."""
    job = client.TrainingJob.get(told.job_id)
    try:
        job.wait_until_complete(
            timeout=told.timeout,
            poll_interval=told.poll_interval or None,
            progress=False if told.as_json else None,
        )
    except KeyboardInterrupt:
        _say_it_goes_on(job)
        raise
    finally:
        if job.status not in ("pending", "running"):
            if told.as_json:
                print_json(record_of(job))
            else:
                say(f"job_id: {job.id}")
                say(f"final_status: {job.status}")
    return AWAITS_VERDICT if job.status == "awaiting_human_eval" else 0


def metrics(told: argparse.Namespace, client: Client) -> int:
    """Print what a job has reached, as JSON either way."""
    print_json(client.TrainingJob.get(told.job_id).get_metrics())
    return 0


def logs(told: argparse.Namespace, client: Client) -> int:
    """Print a job's log, or follow it to its end."""
    job = client.TrainingJob.get(told.job_id)
    if not told.follow:
        lines = job.get_logs(limit=told.limit)
        if told.limit is not None:
            lines = lines[-told.limit :]
        if told.as_json:
            print_json(lines)
        elif not lines:
            say(f"No logs of {told.job_id}.")
        else:
            for line in lines:
                say(line)
        return 0
    skipped = 0 if told.limit is None else max(0, len(job.get_logs()) - told.limit)
    followed = job.stream_logs(poll_interval=told.poll_interval or 0.5, timeout=told.timeout)
    try:
        for line in islice(followed, skipped, None):
            if told.as_json:
                print_json_line(line)
            else:
                say(line)
                sys.stdout.flush()
    except KeyboardInterrupt:
        _say_it_goes_on(job)
        raise
    return 0


def checkpoints(told: argparse.Namespace, client: Client) -> int:
    """Print a job's checkpoints as JSON, or that there are none."""
    found = client.TrainingJob.get(told.job_id).list_checkpoints()
    return _print_list(told, [record_of(one) for one in found], "checkpoints")


def rollouts(told: argparse.Namespace, client: Client) -> int:
    """Print a job's rollouts as JSON, or that there are none."""
    return _print_list(told, [*client.TrainingJob.get(told.job_id).list_rollouts()], "rollouts")


def _print_list(told: argparse.Namespace, found: list[object], what: str) -> int:
    if found or told.as_json:
        print_json(found)
    else:
        say(f"No {what} of {told.job_id}.")
    return 0


def _say_it_goes_on(job: TrainingJobResource[Blocking]) -> None:
    if job.status in ("pending", "running"):
        print(f"job {job.id} goes on", file=sys.stderr)


COMMANDS: Mapping[str, Command] = {
    "status": status,
    "list": list_jobs,
    "cancel": cancel,
    "wait": wait,
    "metrics": metrics,
    "logs": logs,
    "checkpoints": checkpoints,
    "rollouts": rollouts,
}
"""What each word does that needs nothing but the server."""
