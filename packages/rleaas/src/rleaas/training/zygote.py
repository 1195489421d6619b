"""`python -m rleaas.training.zygote`: has imported what workers need, and forks one per request.

Importing torch and what its optimisers pull in costs ten seconds of a core; a fork costs a few
milliseconds. It is asked by `rleaas.server.jobs.zygote` over a socket, holds nothing else that is
open, and refuses to fork when it has a second thread, whose locks nobody would ever open again.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import os
import random
import select
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final, cast

_HEAVY: Final = (
    "rleaas.training.worker",
    "rleaas.evaluation.worker",
    "rleaas.training.policy",
    "rlmesh.numpy",
    "rleaas.training.sb3.trainer",
    "rleaas.training.grpo.trainer",
    "torch._dynamo",
)
_MOST_BYTES: Final = 1 << 20
_TASKS: Final = Path("/proc/self/task")


@dataclass(frozen=True, slots=True)
class Child:
    """What a fork is to do: `module.main()`, under these arguments, variables and output."""

    module: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    log: str


def serve(line: socket.socket) -> Child | None:
    """Answer requests until the other end is closed; in a fork, returns what it is to do."""
    ended, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _wake)
    _tell(line, {"ready": os.getpid()})
    while True:
        watched: list[socket.socket | int] = [line, ended]
        ready, _, _ = select.select(watched, [], [])
        if ended in ready:
            os.read(ended, 4096)
            _reap(line)
        if line not in ready:
            continue
        message = line.recv(_MOST_BYTES)
        if not message:
            return None
        asked = cast("dict[str, object]", json.loads(message))
        child = Child(
            str(asked["module"]),
            cast("list[str]", asked["arguments"]),
            cast("dict[str, str]", asked["environment"]),
            str(asked["log"]),
        )
        threads = len(list(_TASKS.iterdir()))
        if threads != 1:
            _tell(line, {"refused": f"it has {threads} threads"})
            continue
        if _fork(line):
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for number in (ended, waker):
                os.close(number)
            line.close()
            return child


def _fork(line: socket.socket) -> bool:
    """Fork; True in the fork, which begins only when the server knows of it."""
    go, said = os.pipe()
    pid = os.fork()
    if pid:
        os.close(go)
        try:
            _tell(line, {"pid": pid})
            os.write(said, b"!")
        finally:
            os.close(said)
        return False
    os.close(said)
    os.setsid()
    told = os.read(go, 1)
    os.close(go)
    if not told:
        os._exit(1)
    return True


def become(child: Child) -> int:
    """Be the worker that was asked for, to its exit code."""
    _put_on(0, os.devnull, os.O_RDONLY)
    for number in (1, 2):
        _put_on(number, child.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # As PYTHONUNBUFFERED would have it: what was said before a SIGKILL is in the log.
            stream.reconfigure(write_through=True)
    variables = os.environ  # noqa: TID251 - all of them are another's from here on
    variables.clear()
    variables.update(child.environment)
    sys.argv = [child.module, *child.arguments]
    import numpy as np

    random.seed()
    np.random.seed()  # all forks would share its state
    return int(importlib.import_module(child.module).main())


def _wake(_number: int, _frame: FrameType | None) -> None:
    """What wakes is the byte in the pipe."""


def _put_on(number: int, path: str, flags: int) -> None:
    opened = os.open(path, flags, 0o666)
    os.dup2(opened, number)
    os.close(opened)


def _reap(line: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        _tell(line, {"ended": pid, "code": os.waitstatus_to_exitcode(status)})


def _tell(line: socket.socket, message: Mapping[str, object]) -> None:
    line.send(json.dumps(message).encode())


def main(arguments: Sequence[str] | None = None) -> int:
    """Import, and fork until the server is gone; a fork ends with its worker's exit code."""
    parser = argparse.ArgumentParser(prog="python -m rleaas.training.zygote", description=__doc__)
    parser.add_argument("--socket", type=int, required=True, help="a descriptor of the server's")
    parser.add_argument("--only", nargs="*", help="import these modules instead")
    asked = parser.parse_args(arguments)
    line = socket.socket(fileno=asked.socket)
    line.set_inheritable(False)
    for name in _HEAVY if asked.only is None else asked.only:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            # An extra that is not installed: the worker that needs it says so.
            sys.stderr.write(f"zygote: {name} is not imported: {error}\n")
    # Not gc.freeze: triton would tell each job's log of what is never freed.
    try:
        child = serve(line)
    except ConnectionError:  # the server is gone
        child = None
    return 0 if child is None else become(child)


if __name__ == "__main__":
    sys.exit(main())
