"""The environment host: brings registered environments up on demand and keeps their identity."""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from rlcore import (
    ConflictError,
    EnvironmentFailed,
    EnvironmentNotFound,
    Error,
    Secret,
    ServerFailure,
    contract_differences,
)
from sqlalchemy.orm import Session

from rleaas.server.asset_files import AssetFiles
from rleaas.server.envhost import handover
from rleaas.server.envhost.crashes import Crashes
from rleaas.server.envhost.later import Later, call_later
from rleaas.server.envhost.process import Launcher, Served
from rleaas.server.envhost.slots import Hosted, Slot, Start, Stopped, new_outcome, require_wanted
from rleaas.server.envhost.whereabouts import address_of, source_of
from rleaas.server.keys import ServerKeys
from rleaas.server.outbound import Outbound
from rleaas.server.rules import lifecycle
from rleaas.server.rules.sources import (
    SourceKind,
)
from rleaas.server.store import acting_tools, environments
from rleaas.server.store.database import Database
from rleaas.server.store.tables import JsonObject, VersionRow

logger = logging.getLogger("rleaas.server.envhost")

Inspect = Callable[[str, Secret | None, float], JsonObject]
"""Dial an address with a token key and give the served contract; raises `rlcore.Error`."""

Digest = Callable[[JsonObject], str]

WATCH = "rleaas-envhost-watch"
_MOST_STARTS = 32
_STOPPED = "it was stopped while starting"
_RETRY_AFTER_SECONDS = 5.0
_LONGER = 1.2  # than a start may take: its own failure says more than that we gave up waiting


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
        assets: AssetFiles | None = None,
        ready_timeout: float = 60.0,
        allow_code: bool = False,
        outbound: Outbound | None = None,
        clock: Callable[[], float] = time.monotonic,
        later: Later = call_later,
    ) -> None:
        self._database = database
        self._launcher = launcher
        self._inspect = inspect
        self._digest = digest
        self._keys = keys
        self._logs = logs
        self._assets = assets
        self._ready_timeout = ready_timeout
        self._allow_code = allow_code
        self._outbound = outbound or Outbound()
        self._clock = clock
        self._later = later
        self._crashes = Crashes(clock)
        self._needed: dict[int, float] = {}
        self._slots: dict[int, Slot] = {}
        self._queue: deque[Start] = deque()
        self._starters = 0
        self._closing = False
        self._lock = threading.Lock()  # of the five above and all that they hold

    async def ensure(self, version_id: int) -> Hosted:
        """Bring the version up, if it is not; several callers share one start.

        It waits without a thread, so that a start that hangs leaves the threads to other requests.

        Raises:
            ConflictError: it has no source, or is deprovisioned.
            EnvironmentFailed: it did not come up, with the reason.
            ServerFailure: its start is taking too long, or the server is stopping.
        """
        outcome = asyncio.wrap_future(self._outcome(version_id))
        try:
            return await asyncio.wait_for(outcome, self._ready_timeout * _LONGER)
        except TimeoutError as error:
            raise ServerFailure(
                "the environment is still being started",
                status_code=503,
                code="environment_starting",
                retry_after=_RETRY_AFTER_SECONDS,
                hint="Ask again later",
            ) from error

    def needed(self, version_id: int) -> None:
        """Take note that somebody needs the version, so that it does not count as idle."""
        with self._lock:
            self._needed[version_id] = self._clock()

    def start_soon(self, version_id: int) -> None:
        """Bring the version up in the background; the outcome is its status."""
        self._outcome(version_id)

    def stop(self, version_id: int) -> bool:
        """End the version's process, also one that is starting; it comes back on demand.

        Returns:
            Whether there was one.
        """
        with self._lock:
            slot = self._slots.pop(version_id, Slot())
            self._crashes.forget(version_id)
            self._needed.pop(version_id, None)
            if slot.start is not None:
                slot.start.stopped = True
        if slot.start is not None:
            self._give_up(slot.start)
        if slot.process is not None:
            slot.process.stop()
        return slot.start is not None or slot.process is not None

    def forget(self, version_id: int) -> None:
        """End the version's process and remove what is kept of it, as the version is gone."""
        self.stop(version_id)
        log = self._logs / f"{version_id}.log"
        handover.place(log).unlink(missing_ok=True)
        log.unlink(missing_ok=True)

    def start_no_more(self) -> None:
        """Give up every start that is under way, and begin none any more."""
        with self._lock:
            self._closing = True
            self._queue.clear()
            starts = [slot.start for slot in self._slots.values() if slot.start is not None]
            for start in starts:
                start.stopped = True
            for slot in self._slots.values():
                slot.start = None
        for start in starts:
            start.outcome.set_exception(_server_is_stopping())
        _stop_all(start.process for start in starts)

    def close(self) -> None:
        """End every process and start none any more."""
        self.start_no_more()
        with self._lock:
            processes = [slot.process for slot in self._slots.values()]
            self._slots.clear()
        _stop_all(processes)

    def _outcome(self, version_id: int) -> Future[Hosted]:
        with self._lock:
            slot = self._slots.setdefault(version_id, Slot())
            running = slot.hosted
            if running and (slot.process is None or slot.process.ended() is None):
                outcome = new_outcome()
                outcome.set_result(running)
                return outcome
            if slot.start is not None:
                return slot.start.outcome
            if self._closing:
                outcome = new_outcome()
                outcome.set_exception(_server_is_stopping())
                return outcome
            slot.hosted = slot.process = None
            slot.start = Start(version_id)
            self._queue.append(slot.start)
            if self._starters < _MOST_STARTS:
                self._starters += 1
                # A daemon: dialling an address that does not answer must not hold the server's end.
                threading.Thread(
                    target=self._work, name="rleaas-envhost-start", daemon=True
                ).start()
            return slot.start.outcome

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._queue:
                    self._starters -= 1
                    return
                start = self._queue.popleft()
            self._run(start)

    def _run(self, start: Start) -> None:
        try:
            hosted = self._bring_up(start)
        except Stopped:
            logger.info("environment version %s was stopped while starting", start.version_id)
        except Error as error:
            # The status of the version says it to everybody who asks.
            logger.info("environment version %s did not start: %s", start.version_id, error)
            if self._end(start):
                start.outcome.set_exception(error)
        except Exception as error:
            if self._end(start):
                logger.exception("environment version %s did not start", start.version_id)
                start.outcome.set_exception(error)
        else:
            start.outcome.set_result(hosted)

    def _end(self, start: Start) -> bool:
        """Free the slot for the next start, unless somebody has given this one up."""
        with self._lock:
            if start.stopped:
                return False
            self._slots[start.version_id].start = None
            return True

    def _give_up(self, start: Start) -> None:
        if start.process is not None:
            start.process.stop()
        failure: Error = EnvironmentNotFound(
            str(start.version_id), hint="It was deleted while it was starting"
        )
        with self._database.write() as session:
            version = session.get(VersionRow, start.version_id)
            if version is not None:
                if version.status != lifecycle.DEPROVISIONED:
                    self._record_failure(session, start.version_id, _STOPPED)
                failure = EnvironmentFailed(
                    version.environment.name, _STOPPED, hint="The next who asks starts it again"
                )
        start.outcome.set_exception(failure)

    def _bring_up(self, start: Start) -> Hosted:
        version = self._begin(start)
        name = version.environment.name
        source = source_of(version, allow_code=self._allow_code)
        process: Served | None = None
        try:
            key = None
            address = address_of(version, source, self._outbound)
            if source.kind is SourceKind.HOSTED:
                key = self._keys.environment(start.version_id)
                log = self._logs / f"{start.version_id}.log"
                self._hand_over(start.version_id, log)
                process = self._launcher.launch(source.text, version.kwargs, key=key, log=log)
                self._keep_reachable(start, process)
                address = process.wait_ready(self._ready_timeout)
            contract = self._inspect(address, key, self._ready_timeout)
            digest = self._digest(contract)
            if start.stopped:
                raise Stopped  # the database may be closed by now
            return self._up(start, process, address, contract, digest)
        except Error as error:
            if process is not None:
                process.stop()
            if start.stopped:
                raise Stopped from error
            raise self._failed(start, name, str(error)) from error
        except BaseException:
            if process is not None:
                process.stop()
            raise

    def _hand_over(self, version_id: int, log: Path) -> None:
        if self._assets is None:
            return
        with self._database.read() as session:
            version = session.get(VersionRow, version_id)
            if version is None:
                raise EnvironmentNotFound(str(version_id), hint="It was deleted meanwhile")
            told = handover.facts(session, version, self._assets, self._keys)
        told["tools"] = acting_tools.looked_at(told["tools"], self._outbound)
        handover.write(log, told)

    def _keep_reachable(self, start: Start, process: Served) -> None:
        with self._lock:
            start.process = process
            stopped = start.stopped
        if stopped:
            process.stop()

    def _begin(self, start: Start) -> VersionRow:
        with self._database.write() as session:
            if start.stopped:
                raise Stopped
            version = session.get(VersionRow, start.version_id)
            if version is None:
                raise EnvironmentNotFound(str(start.version_id), hint="It was deleted meanwhile")
            if version.status == lifecycle.DEPROVISIONED:
                raise ConflictError(
                    f"environment {version.environment.name!r} is deprovisioned",
                    code="environment_deprovisioned",
                    hint=f"POST /api/environments/{version.environment.name}/start brings it back",
                )
            source_of(version, allow_code=self._allow_code)
            environments.set_status(session, start.version_id, lifecycle.PROVISIONING)
        return version

    def _failed(self, start: Start, name: str, reason: str) -> EnvironmentFailed:
        with self._database.write() as session:
            # Asked inside the transaction: whoever stops a start records that in one of its own.
            require_wanted(session, start)
            self._record_failure(session, start.version_id, reason)
        return EnvironmentFailed(
            name, reason, hint="Correct its source or kwargs and register it again"
        )

    def _record_failure(self, session: Session, version_id: int, reason: str) -> None:
        environments.set_status(session, version_id, lifecycle.FAILED, reason)
        environments.tell(session, version_id, "failed", {"reason": reason})

    def _up(
        self,
        start: Start,
        process: Served | None,
        address: str,
        contract: JsonObject,
        digest: str,
    ) -> Hosted:
        version_id = start.version_id
        with self._database.write() as session:
            require_wanted(session, start)
            registered, on_record = environments.keep_contract(
                session, version_id, contract, digest
            )
            environments.set_status(session, version_id, lifecycle.READY)
            environments.tell(session, version_id, "ready", {"address": address, "digest": digest})
            if registered != digest:
                differences = list(contract_differences(on_record, contract))
                environments.tell(
                    session,
                    version_id,
                    "contract_changed",
                    {"expected": registered, "actual": digest, "differences": differences},
                )
                logger.warning(
                    "%s serves another contract than the registered one: %s", address, differences
                )
        hosted = Hosted(address, process is not None, on_record, registered)
        with self._lock:
            if start.stopped:
                raise Stopped
            slot = self._slots[version_id]
            slot.start, slot.process, slot.hosted = None, process, hosted
            self._crashes.started(version_id)
            self._needed[version_id] = self._clock()
        if process is not None:
            watch = threading.Thread(
                target=self._watch,
                args=(version_id, slot, process),
                name=WATCH,
                daemon=True,
            )
            watch.start()
        return hosted

    def _watch(self, version_id: int, slot: Slot, process: Served) -> None:
        how = process.wait()
        with self._lock:
            if self._closing or not self._is_up(version_id, slot, process):
                return  # it was stopped
            count, delay = self._crashes.ended(version_id)
        again = "it is not started again by itself" if delay is None else f"again in {delay:.1f} s"
        reason = f"it ended by itself, {count} in a row ({again}): {how}"
        logger.warning("environment version %s: %s", version_id, reason)
        with self._database.write() as session:
            data: JsonObject = {"reason": how, "crashes": count, "restart_in": delay}
            environments.tell(session, version_id, "ended", data)
            version = session.get(VersionRow, version_id)
            with self._lock:
                # Inside the transaction: a start that somebody asked for meanwhile writes after it.
                lost = self._is_up(version_id, slot, process)
            if version is None or version.status == lifecycle.DEPROVISIONED or not lost:
                return
            status = lifecycle.FAILED if delay is None else lifecycle.PROVISIONING
            environments.set_status(session, version_id, status, reason)
        if delay is not None:
            self._later(delay, lambda: self._restart(version_id, slot, process))

    def _restart(self, version_id: int, slot: Slot, process: Served) -> None:
        with self._lock:
            wanted = not self._closing and self._is_up(version_id, slot, process)
        if wanted:
            self.start_soon(version_id)

    def _is_up(self, version_id: int, slot: Slot, process: Served) -> bool:
        return self._slots.get(version_id) is slot and slot.process is process

    def running(self) -> list[tuple[int, Served]]:
        """The versions that have a process, each with it."""
        with self._lock:
            return [(id, slot.process) for id, slot in self._slots.items() if slot.process]

    def idle_for(self, version_id: int) -> float:
        """How long nobody has needed the version, in seconds."""
        with self._lock:
            now = self._clock()
            return now - self._needed.get(version_id, now)


def _stop_all(processes: Iterable[Served | None]) -> None:
    # At the same time: one that does not listen must not use up the patience for the others.
    with ThreadPoolExecutor(_MOST_STARTS, thread_name_prefix="rleaas-envhost-stop") as stoppers:
        for stopping in [stoppers.submit(each.stop) for each in processes if each is not None]:
            stopping.result()


def _server_is_stopping() -> ServerFailure:
    return ServerFailure("the server is stopping", status_code=503, code="server_stopping")
