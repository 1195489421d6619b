"""A worker's line to the server: reports out, orders back, files up and down.

Reports are queued and sent in batches by a thread of their own, so that training never waits for
the network. A batch keeps its number until the server has it, and the server takes each number
once: nothing is lost, nothing counts twice. While the server is away, reports and checkpoints wait
here, and the worker goes on.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, cast

import httpx
from rlcore import (
    Backoff,
    Error,
    PlatformUnreachable,
    RolloutsUnreadable,
    UnexpectedReply,
    error_from_http,
)

from rleaas.training.backlog import Backlog, Report, Upload
from rleaas.training.file_digest import file_digest, verify_digest

BATCH = 500
# A server reads, checks and stores at least so much of an upload in a second.
_UPLOAD_BYTES = 4_000_000
_REPLY_SECONDS = 30.0
# So long the trainer itself waits for a server that has just gone away.
_UPLOAD_SECONDS = 1.0
_STATE_MISSING = "state_missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often a worker speaks, and how long it puts up with silence; in seconds.

    Attributes:
        flush: between two looks for what is to be sent.
        heartbeat: without anything to send before a heartbeat is sent.
        beside: without a batch that arrived, as while a large checkpoint goes up, before a sign of
            life is given beside what is under way.
        patience: for a server that does not answer.
        backoff: between two tries.
    """

    flush: float = 0.5
    heartbeat: float = 0.5
    beside: float = 10.0
    patience: float = 60.0
    backoff: Backoff = field(default_factory=lambda: Backoff(first=0.1, cap=2.0))


class Reporter:
    """Sends one job's reports and files, and hears whether to stop.

    Args:
        client: an httpx client with the server's base URL and the worker's token.
        kind: `training` or `evaluation`.
        job_id: the job.
        on_stop: called once, from the reporting thread, when the server wants the job to stop or
            cannot be reported to any more.
        on_moved: called with the new URL when the server answers elsewhere.
        pace: how often to speak, and how long to put up with silence.
        backlog: where reports wait.
        whereabouts: a file in which the server's URL is written when it moves.
    """

    def __init__(
        self,
        client: httpx.Client,
        kind: str,
        job_id: str,
        *,
        on_stop: Callable[[], None] = lambda: None,
        on_moved: Callable[[str], None] = lambda _: None,
        pace: Pace | None = None,
        backlog: Backlog | None = None,
        whereabouts: Path | None = None,
    ) -> None:
        self._client = client
        self._base = f"/api/worker/{kind}/{job_id}"
        self._on_stop = on_stop
        self._on_moved = on_moved
        self._pace = pace or Pace()
        self._backlog = backlog or Backlog()
        self._whereabouts = whereabouts
        self._sending = threading.Lock()
        self._wake = threading.Event()
        self._closed = threading.Event()
        self._sequence = 0
        self._pending: list[Report] | Upload | None = None
        self._away = threading.Event()
        self._thread: threading.Thread | None = None
        self._hearing = threading.Lock()
        self._delivered = 0
        self._spoke = time.monotonic()
        self.cancel_requested = threading.Event()
        self.lost: Error | None = None
        self.refused: Error | None = None

    def assignment(self) -> Mapping[str, object]:
        """What the job is.

        Raises:
            rlcore.RLEaaSError: the server refuses, or does not answer in time.
        """
        return self._object(self._repeat("GET", f"{self._base}/assignment"))

    def report(self, kind: str, data: Mapping[str, object]) -> None:
        """Queue a report; never waits.

        Raises:
            OSError: the server is away, and there is no room on the disk for what waits for it.
        """
        at = datetime.now(UTC).isoformat()
        self._backlog.add({"type": kind, "at": at, "data": dict(data)})

    def start(self) -> None:
        """Begin to send what is reported, and a heartbeat when there is nothing."""
        self._thread = threading.Thread(target=self._run, name="rleaas-reporter", daemon=True)
        self._thread.start()
        threading.Thread(target=self._live, name="rleaas-sign-of-life", daemon=True).start()

    def close(self) -> None:
        """Send what is left and stop.

        Raises:
            rlcore.RLEaaSError: the last reports could not be delivered.
        """
        self._closed.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        if self.lost is not None:
            raise self.lost
        self.flush()
        self._backlog.close()

    def flush(self) -> None:
        """Send all queued reports now.

        Raises:
            rlcore.RLEaaSError: the server refuses them, or does not answer in time.
        """
        with self._sending:
            self._deliver(self._pace.patience)

    def upload(
        self,
        checkpoint_id: str,
        path: Path,
        params: Mapping[str, str | int | float],
        *,
        state: Path | None = None,
    ) -> None:
        """Store a checkpoint's policy file on the server, and its state file before it.

        What was reported before arrives before it. While the server is away, a copy waits with the
        reports, and `refused` is what the server says against it later.

        Raises:
            rlcore.RLEaaSError: the server refuses it.
            OSError: there is no room for the copy.
        """
        self._upload(
            Upload(checkpoint_id=checkpoint_id, path=path, params=dict(params), state=state)
        )

    def upload_rollouts(self, name: str, path: Path) -> None:
        """Store a file of rollouts on the server, as `upload` does with a checkpoint.

        Raises:
            rlcore.RLEaaSError: the server refuses it.
            OSError: there is no room for the copy.
        """
        self._upload(Upload(checkpoint_id=name, path=path, params={}, folder="rollouts"))

    def _upload(self, given: Upload) -> None:
        self._backlog.add(self._backlog.keep(given))
        if self._away.is_set():
            return
        with self._sending:
            before, self.refused = self.refused, None
            try:
                self._deliver(min(_UPLOAD_SECONDS, self._pace.patience))
            except Error as error:
                if not error.retryable:
                    raise
                return  # it goes on waiting, with what waits before it
            finally:
                refused, self.refused = self.refused, before
        if refused is not None:
            raise refused

    def _deliver(self, patience: float) -> None:
        while True:
            if self._pending is None:
                self._pending = self._backlog.take(BATCH)
                self._sequence += isinstance(self._pending, list)
            if self._pending is None:
                return
            if isinstance(self._pending, Upload):
                self._store(self._pending, patience)
            else:
                self._say(self._pending, patience)
            self._pending = None

    def _say(self, batch: list[Report], patience: float) -> None:
        body = {"reports": batch, "seq": self._sequence}
        reply = self._object(
            self._repeat("POST", f"{self._base}/reports", patience=patience, json=body)
        )
        self._delivered = self._sequence
        self._hear(reply)

    def _hear(self, reply: Mapping[str, object]) -> None:
        self._spoke = time.monotonic()
        with self._hearing:
            if reply.get("cancel_requested") is not True or self.cancel_requested.is_set():
                return
            self.cancel_requested.set()
        self._on_stop()

    def _live(self) -> None:
        """Let the server hear of a worker whose uploads take long, and the worker of a cancel."""
        while not self._closed.wait(self._pace.beside / 4):
            if not self._delivered or time.monotonic() - self._spoke < self._pace.beside:
                continue
            # The number of a batch that has arrived: the server takes nothing from it twice.
            body: Report = {"reports": [], "seq": self._delivered}
            response, _ = self._try("POST", f"{self._base}/reports", json=body)
            if response is not None and response.is_success:
                self._hear(self._object(response))

    def _store(self, upload: Upload, patience: float) -> None:
        try:
            try:
                self._put(upload, patience)
            except Error as error:
                if error.code != _STATE_MISSING:
                    raise
                # It was kept for an hour only, and the server was away for longer.
                self._put(upload, patience)
        except Error as error:
            if error.retryable:
                raise
            # The reports behind it are still to be delivered.
            self.refused = error
        upload.forget()

    def _put(self, upload: Upload, patience: float) -> None:
        place = f"{self._base}/{upload.folder}/{upload.checkpoint_id}"
        facts = dict(upload.params)
        if upload.state is not None:
            facts["state_sha256"] = self._send(f"{place}/state", upload.state, {}, patience)
        self._send(place, upload.path, facts, patience)

    def _send(
        self, place: str, path: Path, params: Mapping[str, str | int | float], patience: float
    ) -> str:
        sha256 = file_digest(path)
        self._repeat(
            "PUT",
            place,
            patience=patience,
            params=dict(params),
            content=path.read_bytes(),
            timeout=_REPLY_SECONDS + path.stat().st_size / _UPLOAD_BYTES,
            headers={"x-content-sha256": sha256, "content-type": "application/octet-stream"},
        )
        return sha256

    def download(
        self,
        checkpoint_id: str,
        sha256: str,
        path: Path,
        *,
        what: Literal["file", "state"] = "file",
    ) -> None:
        """Fetch a checkpoint's policy file, or its state file, to `path` and verify it.

        Raises:
            CheckpointCorrupted: what arrived is not what was stored.
            rlcore.RLEaaSError: the server refuses, or does not answer in time.
        """
        response = self._repeat("GET", f"/api/checkpoints/{checkpoint_id}/{what}")
        path.write_bytes(response.content)
        verify_digest(path, sha256, checkpoint_id=checkpoint_id)

    def download_rollouts(self, sha256: str, path: Path) -> None:
        """Fetch a file of rollouts to `path` and verify it.

        Raises:
            RolloutsUnreadable: what arrived is not what was stored.
            rlcore.RLEaaSError: the server refuses, or does not answer in time.
        """
        response = self._repeat("GET", f"/api/rollout-files/{sha256}")
        path.write_bytes(response.content)
        actual = file_digest(path)
        if actual != sha256:
            raise RolloutsUnreadable(sha256, f"what arrived has SHA-256 {actual}")

    def _run(self) -> None:
        quiet_since = time.monotonic()
        while not self._closed.is_set():
            self._wake.wait(self._pace.flush)
            idle = self._pending is None and not len(self._backlog)
            if idle and time.monotonic() - quiet_since >= self._pace.heartbeat:
                self.report("heartbeat", {})
                idle = False
            if not idle:
                quiet_since = time.monotonic()
                try:
                    self.flush()
                except Error as error:
                    self.lost = error
                    self._on_stop()
                    return
                if self.refused is not None:
                    self._on_stop()

    def _repeat(
        self, method: str, path: str, *, patience: float | None = None, **request: object
    ) -> httpx.Response:
        # Every request of this class may be repeated: each says the same thing again.
        give_up = time.monotonic() + (self._pace.patience if patience is None else patience)
        for delay in self._pace.backoff.delays():
            response, failure = self._try(method, path, **request)
            if response is not None and response.is_success:
                self._away.clear()
                return response
            if not failure.retryable:
                raise failure
            self._away.set()
            self._look_for_server()
            if time.monotonic() + delay > give_up:
                raise failure
            time.sleep(delay)
        raise AssertionError("the delays never end")

    def _look_for_server(self) -> None:
        """Speak to the server where it says that it is now."""
        if self._whereabouts is None or not self._whereabouts.exists():
            return
        url = self._whereabouts.read_text("utf-8").strip()
        if url and httpx.URL(url).join("/") != self._client.base_url.join("/"):
            self._client.base_url = url
            self._on_moved(url)

    def _try(
        self, method: str, path: str, **request: object
    ) -> tuple[httpx.Response | None, Error]:
        doing = f"{method} {path}"
        try:
            response = self._client.request(method, path, **request)  # type: ignore[arg-type]  # passed through
        except httpx.TransportError as error:
            failure = PlatformUnreachable(
                f"{doing} at {self._client.base_url}: {type(error).__name__}: {error}",
                retryable=True,
                hint="Is the server running?",
            )
            failure.__cause__ = error
            return None, failure
        failure_or_ok = error_from_http(
            response.status_code,
            _body(response),
            request_id=response.headers.get("x-request-id"),
        )
        return response, failure_or_ok

    def _object(self, response: httpx.Response) -> Mapping[str, object]:
        body = _body(response)
        if not isinstance(body, Mapping):
            raise UnexpectedReply(
                f"{response.request.method} {response.request.url.path} was answered by "
                f"{type(body).__name__} instead of an object"
            )
        return cast("Mapping[str, object]", body)


def _body(response: httpx.Response) -> object:
    with contextlib.suppress(ValueError):
        return cast("object", response.json())
    return response.text
