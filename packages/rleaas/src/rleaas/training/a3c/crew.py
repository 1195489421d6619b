"""The processes of the actors, as the process that started them sees them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, cast

import torch.multiprocessing
from torch.multiprocessing import get_all_start_methods

from rleaas.training.a3c.actor_process import Role, run_actor
from rleaas.training.a3c.messages import Message

LEAVE_SECONDS = 1.0
"""How long an actor may take to leave once it is told to, before it is killed."""


# One process imports this once, and every actor begins as a copy of it.
_PRELOADED = ["rleaas.training.a3c.actor_process"]


def actor_context() -> Any:  # torch leaves its type open
    """How actors are started, and what they share must be made by."""
    if "forkserver" not in get_all_start_methods():
        return torch.multiprocessing.get_context("spawn")
    context: Any = torch.multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    return context


class ActorLost(Exception):
    """An actor's process ended without a word; never leaves this room."""

    def __init__(self, number: int, code: int | None) -> None:
        super().__init__(number, code)
        self.number = number
        self.code = code


class Crew:
    """Starts actors, hears them, and leaves none behind.

    Each has a pipe of its own: one that dies in the middle of a message keeps nobody else waiting.
    """

    def __init__(self, roles: Sequence[Role]) -> None:
        context: Any = actor_context()
        self._stop = roles[0].counters.stop
        self._processes: list[Any] = []  # of a class that torch does not name
        self._pipes: dict[Connection, int] = {}
        self._excused: set[int] = set()
        try:
            for role in roles:
                hears, speaks = context.Pipe(duplex=False)
                process = context.Process(
                    target=run_actor, args=(role, speaks), name=f"rleaas-actor-{role.number}"
                )
                self._pipes[hears] = role.number
                self._processes.append(process)
                process.start()
                # Its end here would keep the pipe open when the actor is gone.
                speaks.close()
        except BaseException:
            self.dismiss()
            raise

    @property
    def pids(self) -> list[int]:
        """The processes."""
        return [cast("int", process.pid) for process in self._processes]

    def excuse(self, number: int) -> None:
        """This actor leaves by itself."""
        self._excused.add(number)

    def hear(self, seconds: float) -> Iterator[tuple[int, Message]]:
        """What actors say within this time, with who said it.

        Raises:
            ActorLost: one ended before it was told to.
        """
        ready = cast("list[Connection]", wait(list(self._pipes), seconds))
        for pipe in ready:
            number = self._pipes[pipe]
            try:
                message = cast("Message", pipe.recv())
            except (EOFError, OSError):
                del self._pipes[pipe]
                pipe.close()
                if number in self._excused:
                    continue
                process = self._processes[number]
                process.join(LEAVE_SECONDS)
                raise ActorLost(number, process.exitcode) from None
            yield number, message

    def dismiss(self) -> None:
        """Tell all to leave, and end those that do not."""
        self._stop[0] = 1
        deadline = time.monotonic() + LEAVE_SECONDS
        # One that is in the middle of a long message leaves once it is heard.
        while self._pipes and time.monotonic() < deadline:
            for pipe in cast("list[Connection]", wait(list(self._pipes), 0.05)):
                try:
                    pipe.recv()
                except (EOFError, OSError):
                    del self._pipes[pipe]
                    pipe.close()
        for process in self._processes:
            if process.pid is None:
                continue
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
            process.close()
        self._processes.clear()
        for pipe in self._pipes:
            pipe.close()
        self._pipes.clear()
