"""A worker's line to the server: reports out, orders back, files up and down.

Reports are queued and sent in batches by a thread of their own, so that training never waits for
the network. A batch keeps its number until the server has it, and the server takes each number
once: nothing is lost, nothing counts twice.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import httpx
from rlcore import (
    Backoff,
    Error,
    PlatformUnreachable,
    UnexpectedReply,
    error_from_http,
)

from rleaas.training.file_digest import file_digest, verify_digest

BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often a worker speaks, and how long it puts up with silence; in seconds."""

    flush: float = 0.5
    heartbeat: float = 0.5
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
    """

    def __init__(
        self,
        client: httpx.Client,
        kind: str,
        job_id: str,
        *,
        on_stop: Callable[[], None] = lambda: None,
        pace: Pace | None = None,
    ) -> None:
        self._client = client
        self._base = f"/api/worker/{kind}/{job_id}"
        self._on_stop = on_stop
        self._pace = pace or Pace()
        self._queue: deque[dict[str, object]] = deque()
        self._sending = threading.Lock()
        self._wake = threading.Event()
        self._closed = threading.Event()
        self._sequence = 0
        self._pending: list[dict[str, object]] = []
        self._thread: threading.Thread | None = None
        self.cancel_requested = threading.Event()
        self.lost: Error | None = None

    def assignment(self) -> Mapping[str, object]:
        """What the job is.

        Raises:
            rlcore.RLEaaSError: the server refuses, or does not answer in time.
        """
        return self._object(self._repeat("GET", f"{self._base}/assignment"))

    def report(self, kind: str, data: Mapping[str, object]) -> None:
        """Queue a report; never waits."""
        at = datetime.now(UTC).isoformat()
        self._queue.append({"type": kind, "at": at, "data": dict(data)})

    def start(self) -> None:
        """Begin to send what is reported, and a heartbeat when there is nothing."""
        self._thread = threading.Thread(target=self._run, name="rleaas-reporter", daemon=True)
        self._thread.start()

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

    def flush(self) -> None:
        """Send all queued reports now.

        Raises:
            rlcore.RLEaaSError: the server refuses them, or does not answer in time.
        """
        with self._sending:
            while self._queue or self._pending:
                if not self._pending:
                    count = min(BATCH, len(self._queue))
                    self._pending = [self._queue.popleft() for _ in range(count)]
                    self._sequence += 1
                body = {"reports": self._pending, "seq": self._sequence}
                reply = self._object(self._repeat("POST", f"{self._base}/reports", json=body))
                self._pending = []
                if reply.get("cancel_requested") is True and not self.cancel_requested.is_set():
                    self.cancel_requested.set()
                    self._on_stop()

    def upload(
        self, checkpoint_id: str, path: Path, params: Mapping[str, str | int | float]
    ) -> None:
        """Store a checkpoint file on the server.

        Raises:
            rlcore.RLEaaSError: the server refuses it, or does not answer in time.
        """
        content = path.read_bytes()
        self._repeat(
            "PUT",
            f"{self._base}/checkpoints/{checkpoint_id}",
            params=dict(params),
            content=content,
            headers={
                "x-content-sha256": file_digest(path),
                "content-type": "application/octet-stream",
            },
        )

    def download(self, checkpoint_id: str, sha256: str, path: Path) -> None:
        """Fetch a checkpoint file to `path` and verify it.

        Raises:
            CheckpointCorrupted: what arrived is not what was stored.
            rlcore.RLEaaSError: the server refuses, or does not answer in time.
        """
        response = self._repeat("GET", f"/api/checkpoints/{checkpoint_id}/file")
        path.write_bytes(response.content)
        verify_digest(path, sha256, checkpoint_id=checkpoint_id)

    def _run(self) -> None:
        quiet_since = time.monotonic()
        while not self._closed.is_set():
            self._wake.wait(self._pace.flush)
            if not self._queue and time.monotonic() - quiet_since >= self._pace.heartbeat:
                self.report("heartbeat", {})
            if self._queue or self._pending:
                quiet_since = time.monotonic()
                try:
                    self.flush()
                except Error as error:
                    self.lost = error
                    self._on_stop()
                    return

    def _repeat(self, method: str, path: str, **request: object) -> httpx.Response:
        # Every request of this class may be repeated: each says the same thing again.
        give_up = time.monotonic() + self._pace.patience
        for delay in self._pace.backoff.delays():
            response, failure = self._try(method, path, **request)
            if response is not None and response.is_success:
                return response
            if not failure.retryable or time.monotonic() + delay > give_up:
                raise failure
            time.sleep(delay)
        raise AssertionError("the delays never end")

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
