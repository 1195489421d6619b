"""Stops environments that nobody has needed for long; they start again on demand.

Of several servers of one database, each has processes of its own: one that was deleted or
deprovisioned through another server is ended here, too.
"""

import logging
import threading

from rleaas.server.envhost.host import EnvironmentHost
from rleaas.server.envhost.later import Later, call_later
from rleaas.server.store import environments
from rleaas.server.store.database import Database

logger = logging.getLogger("rleaas.server.envhost")

_LOOK_SECONDS = 30.0


class IdleWatch:
    """Looks for idle environments every now and then.

    Args:
        database: where their jobs are.
        host: who has their processes.
        limit: after how many seconds one is idle; None never.
        later: calls something after a while.
    """

    def __init__(
        self,
        database: Database,
        host: EnvironmentHost,
        limit: float | None,
        *,
        later: Later = call_later,
    ) -> None:
        self._database = database
        self._host = host
        self._limit = limit
        self._later = later
        self._closed = False
        self._looking = threading.Lock()

    def start(self) -> None:
        """Look from now on, until it is closed."""
        if not self._closed:
            self._later(min(_LOOK_SECONDS, self._limit or _LOOK_SECONDS), self._look)

    def close(self) -> None:
        """Look no more; one look that is under way is waited for."""
        self._closed = True
        with self._looking:
            return

    def stop_idle(self) -> list[int]:
        """Stop the versions that nobody has needed for long, or that are not to be served any more.

        One is needed while somebody is connected to it, or a job that uses it is not finished.

        Returns:
            The versions that were stopped.
        """
        running = self._host.running()
        with self._database.read() as session:
            working = environments.versions_in_work(session)
            served = environments.versions_to_serve(session, [id for id, _ in running])
        stopped: list[int] = []
        for version_id, process in running:
            if version_id not in served:
                self._host.stop(version_id)
                stopped.append(version_id)
                continue
            if version_id in working or process.in_use():
                self._host.needed(version_id)
                continue
            idle = self._host.idle_for(version_id)
            if self._limit is None or idle < self._limit:
                continue
            with self._database.write() as session:
                reason = f"stopped after {idle:.0f} s without use; it starts again on demand"
                environments.set_reason(session, version_id, reason)
                environments.tell(session, version_id, "idle", {"seconds": idle})
            self._host.stop(version_id)
            stopped.append(version_id)
        return stopped

    def _look(self) -> None:
        with self._looking:
            if self._closed:
                return
            try:
                self.stop_idle()
            except Exception:  # one look that failed must not be the last
                logger.exception("looking for idle environments failed")
        self.start()
