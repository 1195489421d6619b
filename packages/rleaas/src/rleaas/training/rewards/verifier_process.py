"""`python -m rleaas.training.rewards.verifier_process`: judges for a server, line by line.

The first line says what to judge by, each further one is an episode; each is answered by a line.
"""

from __future__ import annotations

import json
import os
import sys
from typing import IO, Any

from rlcore import GraderError

from rleaas.training.rewards.python_verifier import load
from rleaas.verify.function import FunctionVerifier
from rleaas.verify.means import FunctionSource
from rleaas.verify.trajectory import Trajectory
from rleaas.verify.verdict import FailurePolicy


def main() -> int:
    """Answer until there is no more to read."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the function prints is no answer
    first = sys.stdin.readline()
    if not first:
        return 0
    said: dict[str, Any] = json.loads(first)
    source = FunctionSource(
        source=said["source"],
        function=said["function"],
        threshold=said["threshold"],
        policy=FailurePolicy(**said["policy"]),
        verifier=said["verifier"],
        version=said["version"],
    )
    verifier: FunctionVerifier | None = None
    for line in sys.stdin:
        told = json.loads(line)["trajectory"]
        try:
            verifier = verifier or load(source)
            trajectory = Trajectory.of(
                told["steps"], told["state"], truncated=told["truncated"] is True
            )
            _answer(answers, {"verdict": verifier.judge(trajectory).to_dict()})
        except GraderError as error:
            _answer(answers, {"error": {"reason": error.reason, "detail": error.detail}})
    return 0


def _answer(answers: IO[str], said: dict[str, Any]) -> None:
    answers.write(json.dumps(said) + "\n")
    answers.flush()


if __name__ == "__main__":
    sys.exit(main())
