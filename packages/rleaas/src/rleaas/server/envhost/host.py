"""The environment host: brings registered environments up on demand and keeps their identity."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from rlcore import (
    ConflictError,
    EnvironmentFailed,
    EnvironmentNotFound,
    Error,
    PlatformTimeout,
    Secret,
    contract_differences,
)

from rleaas.server.envhost.process import Launcher, Served
from rleaas.server.keys import ServerKeys
from rleaas.server.rules import lifecycle
from rleaas.server.rules.sources import Source, SourceKind, no_source_reason, parse_source
from rleaas.server.store import environments, events
from rleaas.server.store.database import Database
from rleaas.server.store.tables import JsonObject, VersionRow

logger = logging.getLogger("rleaas.server.envhost")

Inspect = Callable[[str, Secret | None, float], JsonObject]
"""Dial an address with a token key and give the served contract; raises `rlcore.Error`."""

Digest = Callable[[JsonObject], str]


@dataclass(frozen=True, slots=True)
class Hosted:
    """An environment version that answers, with the identity it was registered under."""

    address: str
    needs_token: bool
    contract: JsonObject
    contract_digest: str


@dataclass(slots=True)
class _Slot:
    lock: threading.Lock = field(default_factory=threading.Lock)
    process: Served | None = None
    hosted: Hosted | None = None


class EnvironmentHost:
    """One supervised process for each environment version that somebody uses."""

    def __init__(
        self,
        database: Database,
        launcher: Launcher,
        inspect: Inspect,
        digest: Digest,
        keys: ServerKeys,
        logs: Path,
        *,
        ready_timeout: float = 60.0,
    ) -> None:
        self._database = database
        self._launcher = launcher
        self._inspect = inspect
        self._digest = digest
        self._keys = keys
        self._logs = logs
        self._ready_timeout = ready_timeout
        self._slots: dict[int, _Slot] = {}
        self._slots_lock = threading.Lock()
        self._background = ThreadPoolExecutor(max_workers=2, thread_name_prefix="rleaas-envhost")
        self._closing = threading.Event()

    def ensure(self, version_id: int) -> Hosted:
        """Bring the version up, if it is not; several callers share one start.

        Raises:
            ConflictError: it has no source, or is deprovisioned.
            EnvironmentFailed: it did not come up, with the reason.
            PlatformTimeout: another start of it is taking too long.
        """
        slot = self._slot(version_id)
        if not slot.lock.acquire(timeout=self._ready_timeout + 10):
            raise PlatformTimeout("the environment is still being started", last_status="starting")
        try:
            running = slot.hosted
            if running and (slot.process is None or slot.process.ended() is None):
                return running
            slot.hosted = slot.process = None
            return self._bring_up(version_id, slot)
        finally:
            slot.lock.release()

    def start_soon(self, version_id: int) -> None:
        """Bring the version up in the background; the outcome is its status."""
        if not self._closing.is_set():
            self._background.submit(self._try_to_start, version_id)

    def stop(self, version_id: int) -> bool:
        """End the version's process; it comes back on demand.

        Returns:
            Whether there was one.
        """
        slot = self._slot(version_id)
        with slot.lock:
            process, slot.process, slot.hosted = slot.process, None, None
        if process is None:
            return False
        process.stop()
        return True

    def close(self) -> None:
        """End every process and start none any more."""
        self._closing.set()
        self._background.shutdown(wait=False, cancel_futures=True)
        with self._slots_lock:
            slots = list(self._slots.values())
        for slot in slots:
            # Not under the slot's lock: a start that is under way ends when its process does.
            process, slot.process, slot.hosted = slot.process, None, None
            if process is not None:
                process.stop()

    def _slot(self, version_id: int) -> _Slot:
        with self._slots_lock:
            return self._slots.setdefault(version_id, _Slot())

    def _try_to_start(self, version_id: int) -> None:
        try:
            self.ensure(version_id)
        except Error as error:
            # The status of the version says it to everybody who asks.
            logger.info("environment version %s did not start: %s", version_id, error)

    def _bring_up(self, version_id: int, slot: _Slot) -> Hosted:
        version = self._begin(version_id)
        name = version.environment.name
        source = _source_of(version)
        process: Served | None = None
        try:
            key = None
            address = source.text
            if source.kind is SourceKind.HOSTED:
                key = self._keys.environment(version_id)
                process = self._launcher.launch(
                    source.text,
                    version.kwargs,
                    key=key,
                    log=self._logs / f"{version_id}.log",
                    timeout=self._ready_timeout,
                )
                address = process.address
            contract = self._inspect(address, key, self._ready_timeout)
            digest = self._digest(contract)
        except Error as error:
            if process is not None:
                process.stop()
            raise self._failed(version_id, name, str(error)) from error
        except BaseException:
            if process is not None:
                process.stop()
            raise
        return self._up(version_id, slot, process, address, contract, digest)

    def _begin(self, version_id: int) -> VersionRow:
        with self._database.write() as session:
            version = session.get(VersionRow, version_id)
            if version is None:
                raise EnvironmentNotFound(str(version_id), hint="It was deleted meanwhile")
            if version.status == lifecycle.DEPROVISIONED:
                raise ConflictError(
                    f"environment {version.environment.name!r} is deprovisioned",
                    code="environment_deprovisioned",
                    hint=f"POST /api/environments/{version.environment.name}/start brings it back",
                )
            _source_of(version)
            environments.set_status(session, version_id, lifecycle.PROVISIONING)
        return version

    def _failed(self, version_id: int, name: str, reason: str) -> EnvironmentFailed:
        with self._database.write() as session:
            if self._closing.is_set():  # not its fault: it was ended with the server
                environments.set_status(session, version_id, lifecycle.REGISTERED)
            else:
                environments.set_status(session, version_id, lifecycle.FAILED, reason)
            events.add(session, f"environment_version:{version_id}", "failed", {"reason": reason})
        return EnvironmentFailed(
            name, reason, hint="Correct its source or kwargs and register it again"
        )

    def _up(
        self,
        version_id: int,
        slot: _Slot,
        process: Served | None,
        address: str,
        contract: JsonObject,
        digest: str,
    ) -> Hosted:
        subject = f"environment_version:{version_id}"
        with self._database.write() as session:
            registered, on_record = environments.keep_contract(
                session, version_id, contract, digest
            )
            environments.set_status(session, version_id, lifecycle.READY)
            events.add(session, subject, "ready", {"address": address, "digest": digest})
            if registered != digest:
                differences = list(contract_differences(on_record, contract))
                events.add(
                    session,
                    subject,
                    "contract_changed",
                    {"expected": registered, "actual": digest, "differences": differences},
                )
                logger.warning(
                    "%s serves another contract than the registered one: %s", address, differences
                )
        slot.process = process
        slot.hosted = Hosted(address, process is not None, on_record, registered)
        if process is not None:
            watch = threading.Thread(
                target=self._watch, args=(version_id, slot, process), daemon=True
            )
            watch.start()
        return slot.hosted

    def _watch(self, version_id: int, slot: _Slot, process: Served) -> None:
        how = process.wait()
        if slot.process is not process or self._closing.is_set():
            return  # it was stopped, not lost
        logger.warning("environment version %s ended: %s; it restarts on demand", version_id, how)
        with self._database.write() as session:
            events.add(session, f"environment_version:{version_id}", "ended", {"reason": how})


def _source_of(version: VersionRow) -> Source:
    source = parse_source(version.source)
    if source is None:
        reason = version.status_reason or no_source_reason(version.environment.vertical)
        raise ConflictError(
            f"environment {version.environment.name!r} cannot be served: {reason}",
            code="environment_without_source",
        )
    return source
