import json
import threading
import time
from collections.abc import Iterator

import httpx
import pytest
from rlcore import PlatformTimeout, RateLimitError
from rleaas import AsyncClient, Client
from rleaas.server.feed import Feed
from rleaas.server.store import events

from .conftest import Running, Start

CHANGES = ("environment.created", "tool.registered", "environment.deleted")
STREAM = {"accept": "text/event-stream"}


def tell(running: Running, subject: str, kind: str = "happened", **data: object) -> None:
    with running.server.state.database.write(1) as session:
        events.add(session, subject, kind, data)


def messages(lines: Iterator[str], count: int) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    while len(found) < count:
        line = next(lines)
        if line.startswith("data: "):
            found.append(json.loads(line.removeprefix("data: ")))
    return found


def until(*, feed: Feed, waiting: int) -> None:
    deadline = time.monotonic() + 20
    while feed.waiting != waiting:
        assert time.monotonic() < deadline, f"{feed.waiting} wait, not {waiting}"
        threading.Event().wait(0.02)


def test_a_stream_goes_on_after_the_last_event_that_was_seen(platform: Running) -> None:
    tell(platform, "tool:1")
    with platform.http.stream("GET", "/api/events?after=0", headers=STREAM) as reply:
        assert reply.headers["content-type"].startswith("text/event-stream")
        lines = reply.iter_lines()
        first = messages(lines, 1)[0]
        tell(platform, "tool:2", n=1)
        second = messages(lines, 1)[0]
    tell(platform, "tool:3")

    headers = {**STREAM, "Last-Event-ID": str(second["id"])}
    with platform.http.stream("GET", "/api/events", headers=headers) as reply:
        third = messages(reply.iter_lines(), 1)[0]

    assert [one["subject"] for one in (first, second, third)] == ["tool:1", "tool:2", "tool:3"]
    assert second["data"] == {"n": 1}


def test_a_stream_without_a_cursor_begins_now(platform: Running) -> None:
    tell(platform, "tool:old")
    with platform.http.stream("GET", "/api/events", headers=STREAM) as reply:
        lines = reply.iter_lines()
        next(lines)
        tell(platform, "tool:new")
        assert messages(lines, 1)[0]["subject"] == "tool:new"


def test_a_silent_stream_beats_and_one_that_nobody_reads_is_given_up(platform: Running) -> None:
    feed = platform.server.state.feed
    feed.heartbeat_seconds = 0.05
    with platform.http.stream("GET", "/api/events", headers=STREAM) as reply:
        lines = reply.iter_lines()
        assert any(line.startswith(": still here") for line in lines)
        assert feed.waiting == 1

    until(feed=feed, waiting=0)


def test_there_is_a_bound_on_streams_and_it_is_said_when_to_come_back(platform: Running) -> None:
    platform.server.state.feed = Feed(platform.server.state.database, most_of_one=1)
    with platform.http.stream("GET", "/api/events", headers=STREAM) as reply:
        lines = reply.iter_lines()  # held, as its end would end the stream
        next(lines)
        refused = platform.http.get("/api/events", headers=STREAM)
        waiting = platform.http.get("/api/events?wait_seconds=5")
        at_once = platform.http.get("/api/events")

    assert (refused.status_code, refused.headers["retry-after"]) == (429, "2")
    assert (waiting.status_code, at_once.status_code) == (429, 200)


def test_places_are_counted_for_each_organisation_and_for_all(platform: Running) -> None:
    feed = Feed(platform.server.state.database, most_waiting=2, most_of_one=1)
    with feed.place(1), feed.place(2):
        with pytest.raises(RateLimitError):
            feed.place(2).__enter__()
        with pytest.raises(RateLimitError):
            feed.place(3).__enter__()
    assert feed.waiting == 0


def test_the_end_of_the_server_ends_its_streams(start: Start) -> None:
    running = start()
    with running.http.stream("GET", "/api/events", headers=STREAM) as reply:
        lines = reply.iter_lines()
        next(lines)
        began = time.monotonic()
        running.server.stop()
        assert [line for line in lines if line.startswith("data:")] == []

    assert time.monotonic() - began < 4


def test_an_answer_waits_for_the_next_event_and_tells_where_to_go_on(platform: Running) -> None:
    cursor = platform.ok(platform.http.get("/api/events"))["cursor"]
    told = threading.Timer(0.2, tell, (platform, "tool:1"))
    told.start()

    found = platform.ok(
        platform.http.get("/api/events", params={"after": str(cursor), "wait_seconds": 20})
    )

    told.join()
    assert [one["subject"] for one in Running.listed(found, "events")] == ["tool:1"]
    nothing = platform.ok(
        platform.http.get(
            "/api/events", params={"after": str(found["cursor"]), "wait_seconds": 0.1}
        )
    )
    assert nothing == {"events": [], "cursor": found["cursor"]}


def test_events_are_filtered_by_subject_kind_environment_and_job(platform: Running) -> None:
    platform.ready("A")
    platform.ready("B")
    job_id = platform.train("A")
    platform.finished("training", job_id)
    tell(platform, "tool:1")

    def subjects(**params: str) -> set[object]:
        found = platform.ok(platform.http.get("/api/events", params={"after": "0", **params}))
        return {one["subject"] for one in Running.listed(found, "events")}

    assert subjects(subject="tool:1") == {"tool:1"}
    assert subjects(kind="completed, nothing") == {f"job:{job_id}"}
    assert subjects(job=job_id) == {f"job:{job_id}"}
    of_a, of_b = subjects(environment="A"), subjects(environment="B")
    assert f"job:{job_id}" in of_a
    assert not of_a & of_b
    missing = platform.http.get("/api/events", params={"environment": "none"})
    assert missing.status_code == 404
    assert platform.http.get("/api/events", headers={"Last-Event-ID": "x"}).status_code == 422


def test_events_of_another_organisation_are_not_told(start: Start) -> None:
    running = start()
    with running.server.state.database.write() as session:
        events.add(session, "tool:theirs", "happened", {}, organisation=1)
    with running.server.state.database.read(2) as session:
        assert events.following(session, events.Wanted(), 0, 10) == []


def test_a_client_follows_events_as_they_happen(platform: Running) -> None:
    def tell_when_asked() -> None:
        until(feed=platform.server.state.feed, waiting=1)
        tell(platform, "tool:1")

    told = threading.Thread(target=tell_when_asked)
    with Client(base_url=platform.server.url) as client:
        told.start()
        stream = client.events(subject="tool:1", timeout=20)
        first = next(stream)
        again = list(client.events(after=0, kinds=["happened"], timeout=0))
        ended = list(client.events(kinds="happened", timeout=0.3))

    told.join()
    assert (first.subject, again, ended) == ("tool:1", [first], [])


def test_a_job_tells_its_events_and_its_log_until_it_is_over(start: Start) -> None:
    running = start(
        plan=[
            ("started", {}),
            ("log", {"line": "one"}),
            ("metric", {"episode": 1, "avg_reward": 1.0}),
            ("completed", {}),
        ]
    )
    running.ready()
    with Client(base_url=running.server.url) as client:
        job = client.TrainingJob.run("CartPole")
        kinds = [event.kind for event in job.events()]
        metrics = list(job.events(kinds=["metric"]))
        lines = list(job.stream_logs())

    assert kinds[0] == "created"
    assert kinds[-1] == "completed"
    assert [event.data["avg_reward"] for event in metrics] == [1.0]
    assert "one" in lines


def test_following_a_job_for_longer_than_the_timeout_says_so(start: Start) -> None:
    running = start(plan=[("until_cancelled", {})])
    running.ready()
    with Client(base_url=running.server.url) as client:
        job = client.TrainingJob.run("CartPole")
        with pytest.raises(PlatformTimeout, match="goes on after"):
            list(job.events(timeout=0.5))
        job.cancel()
        assert [event.kind for event in job.events()][-1] == "cancelled"


@pytest.mark.anyio
async def test_the_asynchronous_client_follows_events_and_logs(start: Start) -> None:
    running = start(plan=[("started", {}), ("log", {"line": "one"}), ("completed", {})])
    running.ready()
    async with AsyncClient(base_url=running.server.url) as client:
        job = await client.TrainingJob.run("CartPole")
        kinds = [event.kind async for event in job.events()]
        lines = [line async for line in job.stream_logs()]
        same = [event.kind async for event in client.events(after=0, job_id=job.id, timeout=0)]
    assert same == kinds
    assert kinds[-1] == "completed"
    assert "one" in lines


def test_a_question_that_nobody_waits_for_any_more_is_given_up(platform: Running) -> None:
    feed = platform.server.state.feed

    def ask() -> None:
        with pytest.raises(httpx.ReadTimeout):
            platform.http.get("/api/events?wait_seconds=25", timeout=3)

    asking = threading.Thread(target=ask)
    asking.start()
    until(feed=feed, waiting=1)
    asking.join()

    until(feed=feed, waiting=0)


def test_changes_of_the_catalogue_are_told_and_grants_are_not(platform: Running) -> None:
    platform.register("Told")
    given = {"environment": "Told", "tools": [{"name": "t"}]}
    platform.ok(platform.http.post("/api/tools", json=given))
    platform.ok(platform.http.post("/api/keys", json={"name": "untold"}))
    platform.ok(platform.http.delete("/api/custom-environments/Told"))

    told = platform.listed(platform.ok(platform.http.get("/api/events?after=0")), "events")

    changes = [(one["kind"], one["data"]) for one in told if one["kind"] in CHANGES]
    by = {"by": "local"}
    assert changes == [
        ("environment.created", {**by, "environment": "Told"}),
        ("tool.registered", by),
        ("environment.deleted", {**by, "environment": "Told"}),
    ]
    assert not any(str(one["kind"]).startswith("key.") for one in told)
