"""How a worker process is started for a job."""

import sys
from collections.abc import Callable, Sequence

from rleaas.server.store.jobs import EVALUATION, TRAINING

WorkerCommand = Callable[[str, str, str], Sequence[str]]
"""(kind, job id, server URL) to the command line."""

_MODULES = {TRAINING: "rleaas.training.worker", EVALUATION: "rleaas.evaluation.worker"}


def worker_command(kind: str, job_id: str, url: str) -> list[str]:
    """The command that does a job of this kind and reports to `url`."""
    return [sys.executable, "-m", _MODULES[kind], "--server", url, "--id", job_id]
