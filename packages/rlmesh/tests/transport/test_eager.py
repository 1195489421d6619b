"""How receiving watches before it sleeps."""

from __future__ import annotations

import os
import resource
import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from rlmesh.transport import eager as room
from rlmesh.transport.eager import MOST_PASSED_OVER, WATCHES, eager

if TYPE_CHECKING:
    from typing_extensions import Buffer

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_yield") or len(os.sched_getaffinity(0)) < 2,
    reason="watching needs a second core",
)


class Noted(socket.socket):
    """Notes whether each call wanted to wait."""

    def __init__(self, fileno: int) -> None:
        super().__init__(fileno=fileno)
        self.waited: list[bool] = []

    def recv_into(self, buffer: Buffer, nbytes: int = 0, flags: int = 0) -> int:
        self.waited.append(flags != socket.MSG_DONTWAIT)
        return super().recv_into(buffer, nbytes, flags)


@pytest.fixture
def ends() -> Iterator[tuple[Noted, socket.socket]]:
    here, there = socket.socketpair()
    noted = Noted(here.detach())
    noted.settimeout(None)
    yield noted, there
    noted.close()
    there.close()


def in_vain(noted: Noted, there: socket.socket, receive: room.Receive) -> list[bool]:
    """What was called while something came only after the thread had gone to sleep."""
    noted.waited.clear()
    answer = threading.Timer(0.02, there.send, (b"late",))
    answer.start()
    assert receive(memoryview(bytearray(8))) == 4
    answer.join()
    return list(noted.waited)


def test_what_is_there_is_taken_without_a_wait(ends: tuple[Noted, socket.socket]) -> None:
    noted, there = ends
    receive = eager(noted)
    there.send(b"here")
    view = memoryview(bytearray(8))
    assert receive(view) == 4
    assert bytes(view[:4]) == b"here"
    assert noted.waited == [False]


def test_what_comes_late_is_waited_for_asleep(ends: tuple[Noted, socket.socket]) -> None:
    noted, there = ends
    called = in_vain(noted, there, eager(noted))
    assert called[-1] is True
    assert not any(called[:-1])


def test_watching_in_vain_is_done_ever_more_rarely(ends: tuple[Noted, socket.socket]) -> None:
    noted, there = ends
    receive = eager(noted)
    watched = [len(in_vain(noted, there, receive)) > 1 for _ in range(6)]
    # After the first vain watch one wait is passed over, after the next three.
    assert watched == [True, False, True, False, False, False]


def test_a_wait_that_was_short_is_watched_again(ends: tuple[Noted, socket.socket]) -> None:
    noted, there = ends
    receive = eager(noted)
    in_vain(noted, there, receive)
    for _ in range(3):
        there.send(b"soon")
        receive(memoryview(bytearray(8)))
    assert len(in_vain(noted, there, receive)) > 1
    assert MOST_PASSED_OVER < 100


def test_an_end_is_told_by_nothing_received(ends: tuple[Noted, socket.socket]) -> None:
    noted, there = ends
    there.close()
    assert eager(noted)(memoryview(bytearray(8))) == 0


def test_a_wait_has_the_limit_of_the_socket(ends: tuple[Noted, socket.socket]) -> None:
    noted, _ = ends
    noted.setsockopt(
        socket.SOL_SOCKET, socket.SO_RCVTIMEO, b"\0" * 8 + (20_000).to_bytes(8, "little")
    )
    with pytest.raises(BlockingIOError):
        eager(noted)(memoryview(bytearray(8)))


def test_only_one_thread_of_a_process_watches(ends: tuple[Noted, socket.socket]) -> None:
    noted, there = ends
    receive = eager(noted)
    there.send(b"here")
    with room._place:  # pyright: ignore[reportPrivateUsage]  # as another thread would have it
        assert receive(memoryview(bytearray(8))) == 4
    assert noted.waited == [True]


def test_on_one_core_nobody_watches(
    ends: tuple[Noted, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    noted, there = ends

    def one_core(_: int) -> set[int]:
        return {0}

    monkeypatch.setattr(os, "sched_getaffinity", one_core)
    there.send(b"here")
    assert eager(noted)(memoryview(bytearray(8))) == 4
    assert noted.waited == [True]


def test_where_others_want_the_core_nobody_watches(
    ends: tuple[Noted, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = iter(range(0, 1000, 5))

    def preempted(_: int) -> SimpleNamespace:
        return SimpleNamespace(ru_nivcsw=next(counts))

    monkeypatch.setattr(resource, "getrusage", preempted)
    noted, there = ends
    receive = eager(noted)
    for _ in range(20 * WATCHES):
        there.send(b"here")
        receive(memoryview(bytearray(8)))
    # The second look after the first tells that the core is wanted.
    assert noted.waited[: 2 * WATCHES] == [False] * 2 * WATCHES
    assert noted.waited[2 * WATCHES : 3 * WATCHES] == [True] * WATCHES
    assert sum(noted.waited[2 * WATCHES :]) > 10 * WATCHES
