"""Streams that are streams: one request, nothing missed, nothing heard twice."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Generator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import cast

import pytest
from rlcore import PlatformTimeout, PlatformUnreachable, TrainingJobFailed
from rleaas import AsyncClient
from rleaas.server.local import LocalServer
from rleaas.server.store import events

from .colours import COLOURS, Colour
from .conftest import served


def tell(server: LocalServer, subject: str, **data: object) -> None:
    with server.state.database.write(1) as session:
        events.add(session, subject, "happened", data)


def asked(colour: Colour, path: str) -> int:
    return sum(request.path == path for request in colour.requests)


def until_listening(server: LocalServer) -> None:
    deadline = time.monotonic() + 20
    while not server.state.feed.waiting:
        assert time.monotonic() < deadline, "nobody listens"
        threading.Event().wait(0.01)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_events_of_a_job_come_over_one_connection(colour: Colour, name: str) -> None:
    async def conversation(client: AsyncClient) -> tuple[list[str], str]:
        env = await client.Environment.create(name, source="gym://CartPole-v1")
        await env.wait_until_ready()
        job = await client.TrainingJob.run(env)
        return [event.kind async for event in job.events()], job.id

    kinds, _ = colour.play(conversation)

    assert (kinds[0], kinds[-1]) == ("created", "completed")
    assert {"metric", "checkpoint_saved"} <= set(kinds)
    streams = [one for one in colour.requests if "event-stream" in one.headers.get("Accept", "")]
    assert len(streams) == 1
    # The second looks for what was reported while the job ended.
    assert asked(colour, "/api/events") <= 3


def test_lines_of_a_log_come_over_one_connection(colour: Colour, name: str) -> None:
    async def conversation(client: AsyncClient) -> tuple[list[str], str]:
        env = await client.Environment.create(name, source="gym://CartPole-v1")
        await env.wait_until_ready()
        job = await client.TrainingJob.run(env)
        return [line async for line in job.stream_logs()], job.id

    lines, job_id = colour.play(conversation)

    assert [line for line in lines if line in ("one", "two")] == ["one", "two"]
    assert asked(colour, f"/api/training/jobs/{job_id}/log-page") == 1


def test_events_of_the_platform_come_as_they_happen(colour: Colour, platform: LocalServer) -> None:
    subject = f"tool:{colour.name}-{time.monotonic_ns()}"

    heard = threading.Event()

    def tell_on() -> None:
        # From which one on they are heard is the listener's to say; after it, none is left out.
        for n in range(1000):
            tell(platform, subject, n=n)
            if heard.wait(0.05):
                return

    async def conversation(client: AsyncClient) -> list[int]:
        told = threading.Thread(target=tell_on)
        told.start()
        found: list[int] = []
        try:
            async with aclosing(client.events(subject=subject, timeout=20)) as stream:
                async for event in stream:
                    found.append(cast("int", event.data["n"]))
                    if len(found) == 3:
                        break
        finally:
            heard.set()
            told.join()
        return found

    found = colour.play(conversation)
    assert found == [found[0], found[0] + 1, found[0] + 2]
    assert asked(colour, "/api/events") == 1


def test_a_stream_that_is_left_gives_its_place_back(colour: Colour, platform: LocalServer) -> None:
    tell(platform, "tool:left")

    async def conversation(client: AsyncClient) -> None:
        for _ in range(3):
            async with aclosing(client.events(after=0)) as stream:
                await anext(stream)

    colour.play(conversation)

    deadline = time.monotonic() + 20
    while platform.state.feed.waiting:
        assert time.monotonic() < deadline, "a place is still taken"
        threading.Event().wait(0.01)


def test_a_stream_ends_at_its_timeout(colour: Colour) -> None:
    async def conversation(client: AsyncClient) -> list[object]:
        return [event async for event in client.events(subject="tool:none", timeout=0.3)]

    began = time.monotonic()
    assert colour.play(conversation) == []
    assert 0.3 <= time.monotonic() - began < 5


def test_a_job_that_goes_on_is_said_at_the_timeout(tmp_path: Path) -> None:
    with served(tmp_path, plan=[("started", {}), ("until_cancelled", {})]) as server:
        for name in COLOURS:
            colour = Colour(name, server.url)

            async def conversation(client: AsyncClient) -> str:
                env = await client.Environment.create("E", source="gym://CartPole-v1")
                await env.wait_until_ready()
                job = await client.TrainingJob.run(env)
                with pytest.raises(PlatformTimeout, match="goes on after"):
                    [event async for event in job.events(timeout=0.2)]
                with pytest.raises(PlatformTimeout, match="goes on after"):
                    [line async for line in job.stream_logs(timeout=0.2)]
                await job.cancel()
                return [event.kind async for event in job.events()][-1]

            assert colour.play(conversation) == "cancelled"


def test_a_log_of_a_failed_job_ends_with_its_failure(tmp_path: Path) -> None:
    plan: list[tuple[str, dict[str, object]]] = [("log", {"line": "last words"}), ("crash", {})]
    with served(tmp_path, plan=plan) as server:

        async def conversation(client: AsyncClient) -> list[str]:
            env = await client.Environment.create("E", source="gym://CartPole-v1")
            await env.wait_until_ready()
            job = await client.TrainingJob.run(env)
            lines: list[str] = []
            try:
                async for line in job.stream_logs():
                    lines.append(line)  # noqa: PERF401 - what came before the failure counts
            except TrainingJobFailed:
                return lines
            raise AssertionError("nobody was told of the failure")

        assert "last words" in Colour("asyncio", server.url).play(conversation)


@pytest.mark.parametrize("name", COLOURS)
def test_a_restarted_server_is_followed_without_loss_or_repetition(
    name: str, tmp_path: Path
) -> None:
    port = free_port()
    running = [served(tmp_path, port=port)]
    running[0].start()
    colour = Colour(name, running[0].url)

    def restart() -> None:
        tell(running[0], "tool:x", n=1)
        until_listening(running[0])
        running[0].stop()
        running.append(served(tmp_path, port=port))
        running[1].start()
        tell(running[1], "tool:x", n=2)
        tell(running[1], "tool:x", n=3)

    async def conversation(client: AsyncClient) -> list[object]:
        restarting = threading.Thread(target=restart)
        found: list[object] = []
        async with aclosing(client.events(subject="tool:x", after=0, timeout=40)) as stream:
            restarting.start()
            async for event in stream:
                found.append(event.data["n"])
                if len(found) == 3:
                    break
        restarting.join()
        return found

    try:
        assert colour.play(conversation) == [1, 2, 3]
    finally:
        running[-1].stop()
    resumed = [request.headers.get("Last-Event-ID") for request in colour.requests]
    assert resumed[0] is None
    assert set(resumed[1:]) != {None}


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


@contextmanager
def cutting(*pieces: bytes) -> Generator[tuple[str, list[bytes]]]:
    """A server that answers each connection with the next piece and cuts it."""
    heads: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for piece in pieces:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    heads.append(connection.recv(65536))
                    connection.sendall(piece)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", heads
        finally:
            listener.shutdown(socket.SHUT_RDWR)
    thread.join()


def event(number: int) -> bytes:
    return b'id: %d\ndata: {"id": %d, "kind": "k", "subject": "s"}\n\n' % (number, number)


@pytest.mark.parametrize("name", COLOURS)
def test_a_connection_that_breaks_within_a_message_is_resumed_before_it(name: str) -> None:
    chunked = HEAD.replace(b"Connection: close", b"Transfer-Encoding: chunked")
    cut = event(1) + event(2)[:20]
    broken = chunked + b"%x\r\n" % len(cut) + cut + b"\r\n"
    with cutting(broken, HEAD + event(2) + event(3)) as (url, heads):

        async def conversation(client: AsyncClient) -> list[int]:
            async with aclosing(client.events(after=0)) as stream:
                return [(await anext(stream)).id for _ in range(3)]

        assert Colour(name, url).play(conversation) == [1, 2, 3]

    assert b"last-event-id" not in heads[0].lower()
    assert b"last-event-id: 1\r\n" in heads[1].lower()


@pytest.mark.parametrize("name", COLOURS)
def test_a_server_that_does_not_come_back_is_an_error_by_the_deadline(name: str) -> None:
    with cutting(HEAD + event(1)) as (url, _):

        async def conversation(client: AsyncClient) -> list[int]:
            found: list[int] = []
            try:
                async for one in client.events(after=0, timeout=1.5):
                    found.append(one.id)  # noqa: PERF401 - what came before the failure counts
            except (PlatformUnreachable, PlatformTimeout):
                return found
            raise AssertionError("nobody was told of the outage")

        began = time.monotonic()
        assert Colour(name, url).play(conversation) == [1]
        assert time.monotonic() - began < 10
