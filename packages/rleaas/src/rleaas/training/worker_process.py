"""The frame of every worker process: command line, reports about its end, exit code."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
from rlcore import Bearer, Error, EvaluationFailed, Secret, TrainingJobFailed
from rlcore.environ import change, variable

from rleaas.training.backlog import Backlog
from rleaas.training.log_bound import bound_own_output
from rleaas.training.own_limits import LIMITS_VARIABLE, watch_own_limits
from rleaas.training.reporter import Pace, Reporter
from rleaas.training.stop_switch import StopSwitch

TOKEN_VARIABLE = "RLEAAS_WORKER_TOKEN"
# For how many seconds to go on without a server; unset: the worker ends with its server.
PATIENCE_VARIABLE = "RLEAAS_WORKER_PATIENCE"
# The worker's own directory, in which its server says where it is.
DIRECTORY_VARIABLE = "RLEAAS_WORKER_DIRECTORY"
SERVER_FILE = "server"
# What the resolver of `rleaas://` addresses asks.
URL_VARIABLE = "RLEAAS_BASE_URL"
REQUEST_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Ending:
    """How the work ended, when it did not fail: `stopped` means before it was done."""

    data: Mapping[str, object]
    stopped: bool = False


Work = Callable[[Reporter, StopSwitch], Ending]


def run_worker(kind: str, work: Work, arguments: Sequence[str] | None = None) -> int:
    """Do one job and report its end; returns the exit code."""
    asked = _parse(kind, arguments)
    token = variable(TOKEN_VARIABLE)
    if token is None:
        sys.stderr.write(f"error: {TOKEN_VARIABLE} is not set; the server starts workers with it\n")
        return 2
    bound_own_output()
    watch_own_limits(variable(LIMITS_VARIABLE))
    switch = StopSwitch()
    switch.install()
    patience = variable(PATIENCE_VARIABLE)
    if patience is None:
        switch.follow_parent()
    place = variable(DIRECTORY_VARIABLE)
    directory = None if place is None else Path(place)
    # A proxy that the environment names is for the internet, not for the server beside us.
    with httpx.Client(
        base_url=asked.server,
        headers=Bearer(Secret(token)).http_headers(),
        timeout=REQUEST_SECONDS,
        trust_env=False,
    ) as client:
        reporter = Reporter(
            client,
            kind,
            asked.id,
            on_stop=lambda: switch.request("the server's order"),
            on_moved=lambda url: change(URL_VARIABLE, url),
            pace=Pace() if patience is None else Pace(patience=float(patience)),
            backlog=Backlog(directory),
            whereabouts=None if directory is None else directory / SERVER_FILE,
        )
        return attempt(work, reporter, switch)


def attempt(work: Work, reporter: Reporter, switch: StopSwitch) -> int:
    """Do the work between `started` and the one report that says how it ended."""
    reporter.start()
    try:
        ending = work(reporter, switch)
        report = "completed" if not ending.stopped else _kind_of_stop(reporter)
        data = {**ending.data}
        if report == "interrupted":
            data = _stopped_early(switch)
    except KeyboardInterrupt:
        report = _kind_of_stop(reporter)
        data = {} if report == "cancelled" else _stopped_early(switch)
    except Error as error:
        report, data = "failed", describe(error)
    except Exception as error:
        # A defect of ours or of a library: the job must still end, with the whole story.
        traceback.print_exc()
        report, data = "failed", describe(error)
    switch.disarm()
    if reporter.refused is not None and report != "cancelled":
        report, data = "failed", describe(reporter.refused)
    if report == "failed":
        # Before the report: whoever hears of the end finds its reason in the log.
        sys.stderr.write(f"error: {data['error']}\n")
    try:
        reporter.report(report, data)
        reporter.close()
    except Error as error:
        sys.stderr.write(f"error: the end of the job ({report}) was not reported: {error}\n")
        return 1
    return 1 if report == "failed" else 0


def describe(error: Exception) -> dict[str, object]:
    """A failure as the data of a `failed` report."""
    if isinstance(error, TrainingJobFailed | EvaluationFailed):
        # The record is the job's own: it needs no telling whose failure it is.
        text = error.detail if error.hint is None else f"{error.detail.rstrip('.')}. {error.hint}"
        reason = error.code
    elif isinstance(error, Error):
        text, reason = str(error), error.code
    else:
        text, reason = f"{type(error).__name__}: {error}", "worker_defect"
    remote = getattr(error, "remote_traceback", None)
    return {
        "error": text,
        "failure_reason": reason,
        "type": type(error).__name__,
        "traceback": remote or "".join(traceback.format_exception(error)),
    }


def _kind_of_stop(reporter: Reporter) -> str:
    # Only the server knows whether a signal meant that a user cancelled the job.
    if not reporter.cancel_requested.is_set() and reporter.lost is None:
        reporter.report("heartbeat", {})
        try:
            reporter.flush()
        except Error as error:
            sys.stderr.write(f"error: the server does not answer any more: {error}\n")
    return "cancelled" if reporter.cancel_requested.is_set() else "interrupted"


def _stopped_early(switch: StopSwitch) -> dict[str, object]:
    reason = switch.reason or "an interrupt"
    return {"reason": reason}


def _parse(kind: str, arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"python -m rleaas.{kind}.worker",
        description=f"Do one {kind} job of a server; the server starts this itself.",
    )
    parser.add_argument("--server", required=True, metavar="URL", help="where to report")
    parser.add_argument("--id", required=True, metavar="ID", help="the job")
    return parser.parse_args(arguments)
