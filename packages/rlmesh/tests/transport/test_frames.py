"""Frames between two sockets, whole and mangled."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from rlmesh.transport.frame_wire import Layouts, marks_of, pieces, views
from rlmesh.transport.frames import (
    HEAD,
    HEAD_SIZE,
    MESSAGE,
    NOTICE,
    STEP,
    Broken,
    FrameEnd,
    Garbled,
    Overdue,
    TooLarge,
)
from rlmesh.transport.shared_memory import SharedMemory

LIMIT = 1_000_000


@pytest.fixture(params=["unix", "tcp"])
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[FrameEnd, FrameEnd]]:
    if request.param == "unix":
        one, other = socket.socketpair()
    else:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            one = socket.create_connection(listener.getsockname())
            other, _ = listener.accept()
    ends = FrameEnd(one, limit=LIMIT), FrameEnd(other, limit=LIMIT)
    for end in ends:
        end.be_patient(5)
    yield ends
    for end in ends:
        end.close()


def message(body: bytes, number: int = 1) -> bytes:
    return HEAD.pack(len(body), MESSAGE, number, 0, 0, 0, 0) + body


@pytest.mark.parametrize(
    "sizes", [(), (0,), (1,), (8,), (16, 16), (3, 5, 8), (100_000, 1, 0, 7), tuple(range(700))]
)
def test_leaves_of_any_size_arrive_aligned(
    pair: tuple[FrameEnd, FrameEnd], sizes: tuple[int, ...]
) -> None:
    sender, receiver = pair
    leaves = [os.urandom(size) for size in sizes]
    layout = Layouts().of(leaves)
    size = HEAD_SIZE + layout.span + 4
    head = HEAD.pack(size - HEAD_SIZE, STEP, 7, 4, 0, len(sizes), 0)
    thread = threading.Thread(
        target=sender.send, args=(pieces(head, layout, leaves, b"tail"), size)
    )
    thread.start()
    frame = receiver.receive()
    thread.join()
    found, start = Layouts().read(frame.view, HEAD_SIZE, frame.leaves)
    assert (frame.kind, frame.number, frame.tail) == (STEP, 7, 4)
    assert [bytes(view) for view in views(frame.view, start, found)] == leaves
    assert bytes(frame.view[start + found.size :]) == b"tail"
    assert all((start + begin) % 8 == 0 for begin, _ in found.slices)


def test_a_layout_is_read_as_it_was_written_however_often_others_come_between() -> None:
    written, read = Layouts(), Layouts()
    for _ in range(2):
        for sizes in [(n, n % 3) for n in range(200)] + [(4,), (4, 0)]:
            leaves = [bytes(size) for size in sizes]
            layout = written.of(leaves)
            content = memoryview(b"".join(pieces(b"", layout, leaves, b"")))
            found, start = read.read(content, 0, len(sizes))
            assert [len(view) for view in views(content, start, found)] == list(sizes)


def test_rewards_flags_and_times_of_many_lanes_keep_the_leaves_aligned() -> None:
    for lanes in range(1, 40):
        marks = marks_of(lanes)
        assert marks.size % 8 == 0
        rewards = [n / 8 for n in range(lanes)]
        told = (*rewards, bytes(lanes), b"\1" * lanes, 2**63, 5)
        assert marks.unpack(marks.pack(0, 0, 0, 0, 0, 0, 0, *told))[7:] == told


def test_a_frame_that_comes_byte_by_byte_is_put_together(
    pair: tuple[FrameEnd, FrameEnd],
) -> None:
    sender, receiver = pair

    def trickle() -> None:
        for byte in message(b"slowly"):
            sender.socket.send(bytes((byte,)))

    thread = threading.Thread(target=trickle)
    thread.start()
    frame = receiver.receive()
    thread.join()
    assert (frame.number, bytes(frame.body)) == (1, b"slowly")


def test_what_arrives_with_a_frame_is_kept_for_the_next(pair: tuple[FrameEnd, FrameEnd]) -> None:
    sender, receiver = pair
    sender.socket.send(message(b"one", 1) + message(b"two", 2) + message(b"", 3)[:5])
    room = memoryview(bytearray(4096))
    got = 0
    while got < 2 * HEAD_SIZE + 11:
        got += receiver.socket.recv_into(room[got:])
    assert bytes(receiver.finish(room, got).body) == b"one"
    assert receiver.has_more
    assert bytes(receiver.receive().body) == b"two"
    sender.socket.send(message(b"", 3)[5:])
    assert receiver.receive().number == 3
    assert not receiver.has_more


def test_a_large_frame_passes_a_small_buffer(pair: tuple[FrameEnd, FrameEnd]) -> None:
    sender, receiver = pair
    body = [os.urandom(300_000), memoryview(os.urandom(400_001)), b"", os.urandom(9)]
    size = sum(map(len, body))
    head = HEAD.pack(size, MESSAGE, 1, 0, 0, 0, 0)
    thread = threading.Thread(target=sender.send, args=((head, *body), HEAD_SIZE + size))
    thread.start()
    frame = receiver.receive()
    thread.join()
    assert bytes(frame.body) == b"".join(bytes(part) for part in body)


@pytest.mark.parametrize(
    ("data", "failure"),
    [
        (b"GET / HTTP/1.1\r\nHost: here.example\r\n\r\n", Garbled),
        (bytes(HEAD_SIZE), Garbled),
        (HEAD.pack(LIMIT, MESSAGE, 1, 0, 0, 0, 0), TooLarge),
        (HEAD.pack(2**32 - 1, MESSAGE, 1, 0, 0, 0, 0), TooLarge),
        (message(b"cut off")[:-1], Broken),
        (message(b"")[:7], Broken),
        (b"", Broken),
    ],
)
def test_what_is_no_frame_is_told_apart(
    pair: tuple[FrameEnd, FrameEnd], data: bytes, failure: type[Exception]
) -> None:
    sender, receiver = pair
    sender.socket.send(data)
    sender.socket.shutdown(socket.SHUT_WR)
    with pytest.raises(failure):
        receiver.receive()


@pytest.mark.parametrize("begun", [b"", message(b"never")[:9], message(b"never")[:-2]])
def test_silence_is_not_waited_for_longer_than_the_patience(
    pair: tuple[FrameEnd, FrameEnd], begun: bytes
) -> None:
    sender, receiver = pair
    sender.socket.send(begun)
    receiver.be_patient(0.2)
    started = time.monotonic()
    with pytest.raises(Overdue):
        receiver.receive()
    assert time.monotonic() - started < 2


def test_somebody_who_reads_nothing_does_not_hold_up_the_sender(
    pair: tuple[FrameEnd, FrameEnd],
) -> None:
    sender, _ = pair
    sender.be_patient(0.2)
    large = bytes(50_000_000)
    with pytest.raises((Overdue, BlockingIOError, TimeoutError)):
        sender.send((HEAD.pack(len(large), MESSAGE, 1, 0, 0, 0, 0), large), HEAD_SIZE + len(large))


def test_notes_are_words_and_nothing_else(pair: tuple[FrameEnd, FrameEnd]) -> None:
    sender, receiver = pair
    sender.say(NOTICE, {"position": 3})
    assert receiver.receive().note() == {"position": 3}
    for body in (b"[1]", b"{", b"\xff"):
        sender.socket.send(message(body))
        with pytest.raises(Garbled):
            receiver.receive().note()


def test_leaves_that_do_not_fit_their_frame_are_refused() -> None:
    with pytest.raises(Garbled):
        Layouts().read(memoryview(bytes(40)), HEAD_SIZE, 2**32 - 1)


memory = pytest.mark.skipif(not SharedMemory.is_offered(), reason="needs memfd")


@memory
def test_shared_memory_shows_the_reader_what_is_written_and_nothing_can_be_cut_off() -> None:
    one, other = socket.socketpair()
    made, descriptor = SharedMemory.made(8192)
    with one, other:
        SharedMemory.send(one, descriptor)
        taken = SharedMemory.received(other, 8192)
    made.write([(0, 3), (8, 11)], [b"abc", memoryview(b"def")])
    assert bytes(taken.view[:11]) == b"abc\0\0\0\0\0def"
    assert taken.view.readonly
    with pytest.raises(OSError, match="not permitted"):
        os.ftruncate(descriptor, 4096)
    os.close(descriptor)
    taken.close()
    made.close()


@memory
@pytest.mark.parametrize("kind", ["unsealed", "small", "no memory", "nothing"])
def test_memory_that_could_vanish_is_refused(kind: str) -> None:
    one, other = socket.socketpair()
    descriptors: list[int] = []
    with one, other:
        if kind == "unsealed":
            descriptors.append(os.memfd_create("test", os.MFD_ALLOW_SEALING))
            os.ftruncate(descriptors[0], 8192)
        elif kind == "small":
            made, descriptor = SharedMemory.made(4096)
            made.close()
            descriptors.append(descriptor)
        elif kind == "no memory":
            descriptors.append(os.open("/dev/null", os.O_RDWR))
        expected: Any = (Garbled, Broken, OSError)
        if kind == "nothing":
            one.send(b"m")
        else:
            SharedMemory.send(one, descriptors[0])
        with pytest.raises(expected):
            SharedMemory.received(other, 8192)
    for descriptor in descriptors:
        os.close(descriptor)


def test_a_wait_that_looks_up_now_and_then_goes_on_until_its_end(
    pair: tuple[FrameEnd, FrameEnd],
) -> None:
    sender, receiver = pair
    receiver.be_patient(5, glance=0.05)
    later = threading.Timer(0.2, sender.say, (NOTICE, {"position": 1}))
    later.start()
    assert receiver.receive().note() == {"position": 1}
    later.join()
    receiver.be_patient(0.2, glance=0.05)
    with pytest.raises(Overdue):
        receiver.receive()
    with pytest.raises(Overdue):
        receiver.wait(memoryview(bytearray(8)))
