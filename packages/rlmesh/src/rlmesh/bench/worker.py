"""The client process of a measurement: it obeys lines of JSON, `python -m rlmesh.bench.worker`."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO

_STARTED = time.monotonic()


class Worker:
    """Obeys commands, one after another.

    `try` finds out about an environment; `open` makes the client and answers when its first reset
    was answered, `run` steps, `close` ends it.
    """

    def __init__(self) -> None:
        # Loading the library is measured by itself, so that it is no part of the start-up time.
        from rlmesh.bench.drive import Drive
        from rlmesh.client import numpy_env, numpy_vector_env

        self._loaded = (Drive, numpy_env, numpy_vector_env)
        self._drive: Drive | None = None
        self.import_s = time.monotonic() - _STARTED

    def try_out(self, command: Mapping[str, Any]) -> dict[str, object]:
        """Tell how many lanes an environment has, and why it cannot be checked, if it cannot."""
        from rlmesh.bench.drive import NotReproducible, check_reproducible, lanes_at

        source = command["source"]
        unchecked: str | None = None
        lanes = lanes_at(source)
        try:
            check_reproducible(source, lanes)
        except NotReproducible as error:
            unchecked = error.message
        return {"lanes": lanes, "unchecked": unchecked}

    def open(self, command: Mapping[str, Any]) -> dict[str, object]:
        """Connect, reset, and take the first steps."""
        make = self._loaded[0]
        self._drive = make(
            command["address"],
            command["source"],
            command["options"],
            lanes=command["lanes"],
            check=command["check"],
        )
        answered = self._drive.begin()
        self._drive.warm_up()
        return {"answered_at": answered}

    def run(self, command: Mapping[str, Any]) -> dict[str, object]:
        """Step."""
        assert self._drive is not None  # the bench opens before it runs
        return self._drive.run(command["steps"], command["seconds"])

    def close(self, _: Mapping[str, Any]) -> dict[str, object]:
        """Let go."""
        if self._drive is not None:
            self._drive.close()
        return {}

    def obey(self, command: Mapping[str, Any]) -> dict[str, object]:
        """Return the answer to a command: what it gives, or why it failed.

        Whatever an environment or a connection raises is the answer: the bench reports it and goes
        on with the next measurement.
        """
        obeyed = {"try": self.try_out, "open": self.open, "run": self.run, "close": self.close}[
            command["do"]
        ]
        try:
            return obeyed(command)
        except Exception as error:
            text = " ".join(str(error).split())
            return {"failed": f"{type(error).__name__}: {text}"}


def main() -> None:
    """Obey until the commands end."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what an environment prints must not mix with the answers
    worker = Worker()
    _say(answers, {"import_s": worker.import_s})
    for line in sys.stdin:
        _say(answers, worker.obey(json.loads(line)))


def _say(answers: TextIO, answer: Mapping[str, object]) -> None:
    answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
