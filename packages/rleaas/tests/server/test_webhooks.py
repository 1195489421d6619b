import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from rlcore import ConfigurationError, InvalidRequestError, NotFoundError, Secret
from rleaas import AsyncClient, Client
from rleaas.resources.webhooks import WebhooksClient
from rleaas.server.courier import PURPOSE, Courier
from rleaas.server.dialling import ask
from rleaas.server.outbound import Outbound
from rleaas.server.rules import webhooks as rules
from rleaas.server.store import events, jobs, webhooks
from rleaas.server.store.tables import DeliveryRow, WebhookRow
from sqlalchemy import select, update

from .conftest import Running, Start

SECRET = "a secret of sixteen"


@dataclass
class Receiver:
    url: str
    status: int = 200
    got: list[tuple[dict[str, str], bytes]] = field(
        default_factory=list[tuple[dict[str, str], bytes]]
    )

    @property
    def told(self) -> list[dict[str, object]]:
        return [json.loads(body) for _, body in self.got]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found: list[Receiver] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            found[0].got.append((dict(self.headers.items()), body))
            self.send_response(found[0].status)
            self.send_header("location", "http://127.0.0.1:1/")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.append(Receiver(f"http://127.0.0.1:{server.server_port}/hook"))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield found[0]
    server.shutdown()
    thread.join()
    server.server_close()


class Dripping:
    """Answers each connection with a head, and then the same bytes again and again."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/"
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []

    def begin(self, head: bytes, again: bytes, pause: float = 0.0) -> None:
        self._run(partial(self._accept, head, again, pause))

    def end(self) -> None:
        if self._ended.is_set():
            return
        self._ended.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _run(self, work: Callable[[], None]) -> None:
        self._threads.append(threading.Thread(target=work))
        self._threads[-1].start()

    def _accept(self, head: bytes, again: bytes, pause: float) -> None:
        while not self._ended.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:  # it was ended
                return
            self._run(partial(self._answer, connection, head, again, pause))

    def _answer(self, connection: socket.socket, head: bytes, again: bytes, pause: float) -> None:
        with connection, suppress(ConnectionError):  # the other side has had enough
            connection.sendall(head)
            while not self._ended.wait(pause):
                connection.sendall(again)


@pytest.fixture
def dripping() -> Iterator[Dripping]:
    found = Dripping()
    yield found
    found.end()


def allowing(running: Running) -> Courier:
    """Let the server ask hosts of this machine, and deliver when the test says so."""
    state = running.server.state
    state.couriers.stop()
    state.courier = Courier(
        state.database, state.keys, Outbound(["127.0.0.1", "localhost"]), first_delay=0.0
    )
    return state.courier


def deliver(courier: Courier) -> None:
    while courier.step():
        pass


def test_a_job_tells_its_webhook_and_what_it_says_is_signed(
    start: Start, receiver: Receiver
) -> None:
    running = start(plan=[("until_cancelled", {})])
    courier = allowing(running)
    running.ready()
    with Client(base_url=running.server.url) as client:
        job = client.TrainingJob.run("CartPole")
        hook = job.set_webhook(receiver.url, ["job_complete"], secret=SECRET)
        assert [one.id for one in job.list_webhooks()] == [hook.id]
        job.cancel()
        running.finished(jobs.TRAINING, job.id)
        deliver(courier)
        log = client.Webhook.deliveries(hook.id)

    headers, body = receiver.got[0]
    assert len(receiver.got) == 1
    assert (receiver.told[0]["event"], receiver.told[0]["kind"]) == ("job_complete", "cancelled")
    assert receiver.told[0]["job_id"] == job.id
    assert WebhooksClient.is_genuine(SECRET, headers, body, now=time.time())
    assert not WebhooksClient.is_genuine("another", headers, body, now=time.time())
    assert not WebhooksClient.is_genuine(SECRET, headers, body + b" ", now=time.time())
    assert not WebhooksClient.is_genuine(SECRET, headers, body, now=time.time() + 3600)
    assert [(one.status, one.status_code, one.attempts) for one in log] == [("delivered", 200, 1)]


def test_a_delivery_that_fails_is_tried_again_until_it_is_given_up(
    platform: Running, receiver: Receiver
) -> None:
    courier = allowing(platform)
    receiver.status = 500
    with Client(base_url=platform.server.url) as client:
        hook = client.Webhook.register(receiver.url, ["tool.registered"])
        with platform.server.state.database.write(1) as session:
            events.add(session, "tool:1", "tool.registered", {})
        courier.step()
        first = client.Webhook.deliveries(hook.id)[0]
        receiver.status = 204
        courier.step()
        second = client.Webhook.deliveries(hook.id)[0]
        with platform.server.state.database.write(1) as session:
            events.add(session, "tool:1", "tool.registered", {})
        receiver.status = 302
        for _ in range(rules.MOST_ATTEMPTS + 3):
            courier.step()
        last = client.Webhook.deliveries(hook.id)[0]

    assert (first.status, first.status_code) == ("pending", 500)
    assert first.error == "answered with status 500"
    assert (second.status, second.attempts, second.error) == ("delivered", 2, None)
    assert (last.status, last.attempts) == ("failed", rules.MOST_ATTEMPTS)
    assert len(receiver.got) == 2 + rules.MOST_ATTEMPTS


def test_pauses_between_attempts_grow_to_a_bound() -> None:
    assert [rules.delay(number, 5.0) for number in (1, 2, 3, 20)] == [5.0, 10.0, 20.0, 3600.0]


def test_a_server_that_died_while_it_delivered_is_made_up_for(
    platform: Running, receiver: Receiver
) -> None:
    courier = allowing(platform)
    with Client(base_url=platform.server.url) as client:
        hook = client.Webhook.register(receiver.url)
        with platform.server.state.database.write(1) as session:
            events.add(session, "tool:1", "tool.registered", {})
        state = platform.server.state
        with state.database.write() as session:
            webhooks.plan(session)
            assert len(webhooks.take(session, lambda _: True)) >= 1
        courier.step()
        held = len(receiver.got)
        past = datetime.now(UTC) - timedelta(seconds=1)
        with state.database.write() as session:
            session.execute(update(DeliveryRow).values(due_at=past))
        deliver(courier)

        assert held == 0
        assert {one.status for one in client.Webhook.deliveries(hook.id)} == {"delivered"}


def test_nobody_listening_is_an_error_in_the_log(platform: Running) -> None:
    allowing(platform)
    with Client(base_url=platform.server.url) as client:
        hook = client.Webhook.register("http://127.0.0.1:1/")
        tried = client.Webhook.test(hook.id)

    assert (tried.status, tried.status_code) == ("pending", None)
    assert "ConnectError" in str(tried.error)


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://127.0.0.1/a\r\nX: y", "invalid_url"),
        ("http://127.0.0.1/\x00", "invalid_url"),
        ("http://a\x00b/", "invalid_url"),
        ("http://127.0.0.1/", "address_not_public"),
        ("https://127.0.0.1/", "address_not_public"),
        ("https://[::1]/", "address_not_public"),
        ("https://169.254.169.254/latest", "address_not_public"),
        ("https://10.0.0.1/", "address_not_public"),
        ("http://8.8.8.8/", "webhook_not_https"),
        ("file:///etc/passwd", "invalid_url"),
        ("https://", "invalid_url"),
        ("nothing", "invalid_url"),
    ],
)
def test_a_url_that_must_not_be_asked_is_refused(platform: Running, url: str, code: str) -> None:
    reply = platform.http.post("/api/webhooks", json={"url": url})

    assert (reply.status_code, reply.json()["code"]) == (422, code)


def test_of_an_endless_answer_only_the_status_and_a_beginning_is_read(dripping: Dripping) -> None:
    dripping.begin(b"HTTP/1.1 200 OK\r\ncontent-length: 9999999999\r\n\r\n", b"x" * 65536)
    place = Outbound(["127.0.0.1"]).permit(dripping.url, frozenset({"http"}))

    answer = ask(place, "GET", dripping.url, seconds=10.0, headers={})

    assert (answer.status_code, len(answer.body)) == (200, 65536)


@pytest.mark.parametrize(
    ("head", "status"), [(b"HTTP/1.1 200 OK\r\nx: ", None), (b"HTTP/1.1 200 OK\r\n\r\n", 200)]
)
def test_who_answers_in_drops_is_left_when_the_time_is_up(
    dripping: Dripping, head: bytes, status: int | None
) -> None:
    dripping.begin(head, b"x", pause=0.02)
    place = Outbound(["127.0.0.1"]).permit(dripping.url, frozenset({"http"}))

    answer = ask(place, "GET", dripping.url, seconds=0.3, headers={})

    assert answer.status_code == status
    assert status is not None or answer.error == "no answer came within 0.3 s"


def test_a_slow_receiver_holds_up_no_other_organisation_and_leaves_room_for_its_own(
    platform: Running, receiver: Receiver, dripping: Dripping
) -> None:
    courier = allowing(platform)
    database = platform.server.state.database
    platform.ok(platform.http.post("/api/organisations", json={"name": "lab", "admin": "a@lab"}))
    dripping.begin(b"HTTP/1.1 200 OK\r\nx: ", b"x", pause=0.02)
    with Client(base_url=platform.server.url) as client:
        slow = client.Webhook.register(dripping.url, ["tool.registered"])
        own = client.Webhook.register(receiver.url, ["tool.registered"])
        with database.write(2) as session:
            sealed = platform.server.state.keys.seal(PURPOSE, Secret(SECRET))
            webhooks.add(session, url=receiver.url, names=[], job_id=None, sealed=sealed)
        for organisation in (1, 1, 1, 2):
            with database.write(organisation) as session:
                events.add(session, "tool:1", "tool.registered", {})
        while len(receiver.got) < 4:
            assert courier.step()
        crowded = platform.http.post(f"/api/webhooks/{slow.id}/test")
        waiting = [one.attempts for one in client.Webhook.deliveries(slow.id)]
        fine = client.Webhook.deliveries(own.id)
        dripping.end()
        courier.close()

    assert {one.status for one in fine} == {"delivered"}
    assert sorted(waiting) == [0, 1, 1]
    assert (crowded.status_code, crowded.headers["retry-after"]) == (429, "10")


def test_passwords_in_urls_are_neither_told_nor_audited(
    platform: Running, receiver: Receiver
) -> None:
    allowing(platform)
    url = receiver.url.replace("//", "//me:hunter2@x@")
    made = platform.http.post("/api/webhooks", json={"url": url})
    tested = platform.http.post(f"/api/webhooks/{made.json()['id']}/test")
    listed = platform.http.get("/api/webhooks")
    audited = platform.http.get("/api/audit")

    assert (made.json()["url"], tested.json()["status"]) == (receiver.url, "delivered")
    assert receiver.got[0][0]["Authorization"].startswith("Basic ")
    for reply in (made, tested, listed, audited):
        assert reply.status_code == 200
        assert "hunter2" not in reply.text
        assert "x@" not in reply.text


def test_a_name_that_leads_somewhere_private_later_is_not_asked(
    platform: Running, receiver: Receiver
) -> None:
    courier = allowing(platform)
    with Client(base_url=platform.server.url) as client:
        hook = client.Webhook.register(receiver.url)
        state = platform.server.state
        state.courier = Courier(state.database, state.keys, Outbound())
        tried = client.Webhook.test(hook.id)

    assert "not a public address" in str(tried.error)
    assert receiver.got == []
    assert courier is not state.courier


# defect: S-4
def test_webhooks_are_listed_tested_and_deleted_and_their_secret_is_told_once(
    platform: Running, receiver: Receiver
) -> None:
    """Defect S-4 is gone: webhooks had no secret, and could be neither listed nor deleted."""
    allowing(platform)
    with Client(base_url=platform.server.url) as client:
        hook = client.Webhook.register(receiver.url, "metrics_update")
        assert str(hook.secret).startswith("whsec_")
        assert str(hook.secret) not in repr(hook)
        (listed,) = client.Webhook.list()
        assert (listed.url, listed.secret) == (receiver.url, None)
        assert client.Webhook.get(hook.id) == listed
        tried = client.Webhook.test(hook.id)
        assert (tried.status, tried.event) == ("delivered", rules.TEST)
        client.Webhook.delete(hook.id)
        assert client.Webhook.list() == []
        with pytest.raises(NotFoundError):
            client.Webhook.test(hook.id)
        with pytest.raises(NotFoundError):
            client.Webhook.delete(hook.id)
    headers, body = receiver.got[0]
    assert WebhooksClient.is_genuine(str(hook.secret), headers, body, now=time.time())


def test_the_secret_is_encrypted_where_it_is_kept(platform: Running, receiver: Receiver) -> None:
    allowing(platform)
    with Client(base_url=platform.server.url) as client:
        client.Webhook.register(receiver.url, secret=SECRET)
    with platform.server.state.database.read(1) as session:
        kept = session.scalars(select(WebhookRow.encrypted_secret)).one()

    assert SECRET not in kept


def test_the_published_registration_is_answered_and_repeated_without_a_second_one(
    start: Start, receiver: Receiver
) -> None:
    running = start(plan=[("until_cancelled", {})])
    allowing(running)
    running.ready()
    job_id = running.train()
    route, body = f"/api/training/jobs/{job_id}/webhook", {"url": receiver.url}

    first = running.ok(running.http.post(route, json=body))
    second = running.ok(running.http.post(route, json=body))

    assert (first["status"], first["job_id"], first["url"]) == ("registered", job_id, receiver.url)
    assert second["id"] == first["id"]
    missing = running.http.post("/api/training/jobs/none/webhook", json=body)
    assert (missing.status_code, missing.json()["detail"]) == (404, "Training job not found")


def test_an_empty_list_of_events_is_not_all_of_them(platform: Running) -> None:
    allowing(platform)
    with Client(base_url=platform.server.url) as client:
        with pytest.raises(ConfigurationError, match="empty list"):
            client.Webhook.register("http://127.0.0.1:1/", [])
        with pytest.raises(InvalidRequestError, match="is no event"):
            client.Webhook.register("http://127.0.0.1:1/", [" "])


@pytest.mark.anyio
async def test_the_asynchronous_client_has_webhooks(platform: Running, receiver: Receiver) -> None:
    allowing(platform)
    async with AsyncClient(base_url=platform.server.url) as client:
        hook = await client.Webhook.register(receiver.url, idempotency_key="k")
        again = await client.webhooks.register(receiver.url, idempotency_key="k")
        assert again.id == hook.id
        assert (await client.Webhook.test(hook.id)).status == "delivered"
        assert len(await client.Webhook.deliveries(hook.id)) == 1
