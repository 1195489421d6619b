"""`python -m rleaas.evaluation.worker`: does one evaluation of a server."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rlcore import EvaluationFailed

from rleaas.evaluation.engine import evaluate
from rleaas.evaluation.report import episode_record, results_of
from rleaas.training.assignment import EvaluationAssignment, read_assignment
from rleaas.training.reporter import Reporter
from rleaas.training.stop_switch import StopSwitch
from rleaas.training.worker import RESOLVE_SECONDS
from rleaas.training.worker_process import Ending, run_worker

if TYPE_CHECKING:
    from rlmesh.runs.results import EpisodeResult


def evaluate_checkpoint(reporter: Reporter, switch: StopSwitch) -> Ending:
    """Fetch the assignment, play its seeds, and report what was seen.

    Raises:
        EvaluationFailed: no episode got a score.
        rlcore.Error: the checkpoint or the environment failed.
    """
    from rleaas.training.policy import load_policy

    assignment = read_assignment(EvaluationAssignment, reporter.assignment())
    identity = assignment.environment.identity
    reporter.report("started", {"pid": os.getpid(), "environment": identity.to_dict()})
    # Before anything is opened: until the server has heard this, a cancel kills this process.
    reporter.flush()
    with tempfile.TemporaryDirectory(prefix=f"rleaas-{assignment.id}-") as directory:
        path = Path(directory) / "checkpoint.zip"
        checkpoint = assignment.checkpoint
        reporter.download(checkpoint.id, checkpoint.sha256, path)
        model = load_policy(path, checkpoint.algorithm)
    endpoint = assignment.environment.endpoint(timeout=RESOLVE_SECONDS)

    def episode_finished(episode: EpisodeResult) -> None:
        reporter.report("episode", episode_record(episode).to_dict())

    result, stopped = evaluate(
        model,
        endpoint,
        assignment.seeds,
        max_episode_steps=assignment.max_episode_steps,
        success_threshold=assignment.success_threshold,
        on_episode=episode_finished,
        stop_requested=lambda: switch.requested,
    )
    if not stopped and not result.scored_episodes:
        first = next(iter(result.failed_episodes), None)
        raise EvaluationFailed(
            assignment.id,
            f"none of {result.coverage.asked} episodes got a score; the first: "
            f"{first.error if first else 'nothing was played'}",
        )
    return Ending({"results": results_of(result)}, stopped=stopped)


def main() -> int:
    """Run the worker's command line."""
    return run_worker("evaluation", evaluate_checkpoint)


if __name__ == "__main__":
    sys.exit(main())
