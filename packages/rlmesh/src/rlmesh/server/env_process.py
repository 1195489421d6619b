"""The process that one session's environment lives in; started by `isolation`."""

from __future__ import annotations

import ctypes
import multiprocessing.spawn
import os
import pickle
import signal
import socket
import sys
import threading
from typing import TYPE_CHECKING, Any, Final

from rlmesh.convert import contract_to_bytes
from rlmesh.protocol.faults import environment_fault
from rlmesh.protocol.handshake import TENSORS
from rlmesh.protocol.messages import Request, Timing
from rlmesh.server.codecs import Codecs
from rlmesh.server.conversation import stage_of
from rlmesh.server.main_script import UnguardedScript
from rlmesh.server.relay import Ended, load_trusted, pack, receive, send
from rlmesh.server.stage import Failed, Stage, now

if TYPE_CHECKING:
    from rlmesh.server.recipes import Made

PR_SET_PDEATHSIG: Final = 1


def main(descriptor: int, parent: int) -> None:
    """Make an environment as the server says, and drive it as the server asks, until it goes."""
    _die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server decides what Ctrl-C means
    os.set_inheritable(descriptor, False)
    end = socket.socket(fileno=descriptor)
    try:
        made = _made(end)
        if made is not None:
            _drive(end, made)
    except Ended:
        pass  # the server has gone, or does not want this any more
    sys.stdout.flush()
    # Not sys.exit: threads that an environment left behind must not keep the process.
    os._exit(0)


def _made(end: socket.socket) -> Made | None:
    (preparation, recipe), _ = receive(end, load_trusted)
    try:
        multiprocessing.spawn.prepare(preparation)
        made: Made = pickle.loads(recipe).make()  # from the process that started this
    except UnguardedScript:
        send(end, ("unguarded",))
        return None
    except BaseException as error:
        send(end, ("failed", environment_fault("make", error)))
        return None
    send(end, ("made", contract_to_bytes(made.contract), made.sort, made.reward_threshold))
    return made


def _drive(end: socket.socket, made: Made) -> None:
    stage: Stage | None = None
    tensors = False
    try:
        while True:
            (operation, content), parts = receive(end, load_trusted)
            if operation == "begin":
                tensors = TENSORS in content
                stage = stage_of(made, Codecs(made), content)
            elif operation == "leave":
                break
            elif stage is not None:
                _answer(end, stage, operation, content, parts, tensors=tensors)
    finally:
        failure = None
        try:
            made.close()
        except BaseException as error:
            failure = environment_fault("close", error)
    send(end, ("left", failure))


def _answer(
    end: socket.socket,
    stage: Stage,
    operation: str,
    content: Any,  # Any: a request, or the lanes to end
    parts: list[memoryview],
    *,
    tensors: bool,
) -> None:
    try:
        if operation == "end":
            send(end, ("ended", stage.end(content)))
            return
        request: Request = content
        if request.action is not None:
            request.action = parts
        timing = Timing(now())
        answer = getattr(stage, operation)(request, timing)
        told, leaves = pack(answer, tensors=tensors)
    except Failed as failure:
        send(end, ("failed", failure.fault))
    except BaseException as error:
        send(end, ("failed", environment_fault(operation, error)))
    else:
        send(end, ("answer", told), leaves)


def _die_with(parent: int) -> None:
    """End when the server ends, however it ends."""
    if sys.platform == "linux":
        # The thread that starts these processes lives as long as the server's process.
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    def watch() -> None:
        while os.getppid() == parent:
            waiting.wait(1.0)
        os._exit(1)

    waiting = threading.Event()
    if os.getppid() != parent:
        os._exit(1)
    if sys.platform != "linux":
        threading.Thread(target=watch, daemon=True).start()
