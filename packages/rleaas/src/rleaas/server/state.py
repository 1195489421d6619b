"""The parts of a running server, put together in one place."""

import logging
import os
import secrets
import socket
from contextlib import ExitStack

from rlcore import contract_digest

from rleaas.server.asset_files import AssetFiles
from rleaas.server.checkpoint_files import CheckpointFiles
from rleaas.server.children import Children
from rleaas.server.courier import Courier
from rleaas.server.denials import Denials
from rleaas.server.envhost.host import EnvironmentHost, Inspect
from rleaas.server.envhost.idle import IdleWatch
from rleaas.server.envhost.inspection import served_contract
from rleaas.server.envhost.process import Launcher, ProcessLauncher
from rleaas.server.feed import Feed
from rleaas.server.git import Git
from rleaas.server.job_logs import JobLogs
from rleaas.server.jobs.commands import WorkerCommand, worker_command
from rleaas.server.jobs.scheduler import Patience, Scheduler
from rleaas.server.keys import ServerKeys
from rleaas.server.metrics import Metrics
from rleaas.server.outbound import Outbound
from rleaas.server.principals import Principals
from rleaas.server.probes import Probes
from rleaas.server.report_files import ReportFiles
from rleaas.server.retention import EVERY_SECONDS, Retention
from rleaas.server.rounds import Round, Rounds
from rleaas.server.rules import lifecycle
from rleaas.server.rules.rates import Rates
from rleaas.server.secret_check import require_own_secret
from rleaas.server.settings import DATABASE_FILE, ServerSettings
from rleaas.server.store import audit, environments, leases
from rleaas.server.store.database import Database

logger = logging.getLogger("rleaas.server")


class ServerState:
    """Everything that the routes use; `start` before the first request, `stop` after the last."""

    def __init__(
        self,
        settings: ServerSettings,
        *,
        launcher: Launcher | None = None,
        inspect: Inspect = served_contract,
        command: WorkerCommand = worker_command,
        patience: Patience | None = None,
    ) -> None:
        data = settings.data_dir
        data.mkdir(parents=True, exist_ok=True)
        self.settings = settings
        # Told to stop: what has begun is brought to its end, and nobody else should come.
        self.draining = False
        # Of this start of this process: nobody else will ever be called so.
        self.holder = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self.keys = ServerKeys(data / "server.key")
        self.database = Database(settings.database_url or data / DATABASE_FILE)
        try:
            self.database.migrate()
            require_own_secret(self.database, self.keys)
            self.database.seal_audit(self.keys.audit)
            self._seal_found_chains()
        except BaseException:
            self.database.close()
            raise
        self.principals = Principals(
            self.database,
            self.keys,
            operator=settings.api_key,
            is_open=settings.api_key is None and not settings.needs_keys,
        )
        self.reports = ReportFiles(data / "reports", self.keys.reports)
        self.feed = Feed(self.database)
        self.denials = Denials(self.database)
        self.rates = Rates()
        self.logs = JobLogs(data / "logs" / "jobs")
        self.files = CheckpointFiles(data / "checkpoints")
        self.assets = AssetFiles(data / "assets")
        self.outbound = Outbound(settings.allowed_hosts)
        self.git = Git(self.outbound)
        self.probes = Probes(self.outbound)
        self._children = Children()
        self.envhost = EnvironmentHost(
            self.database,
            launcher or ProcessLauncher(self._children),
            inspect,
            contract_digest,
            self.keys,
            data / "logs" / "environments",
            assets=self.assets,
            ready_timeout=settings.ready_timeout,
            allow_code=settings.allow_code,
            outbound=self.outbound,
        )
        self.idle = IdleWatch(self.database, self.envhost, settings.idle_seconds)
        self.scheduler = Scheduler(
            self.database,
            self._children,
            self.logs,
            self.keys,
            command=command,
            max_workers=settings.max_workers,
            patience=patience,
            holder=self.holder,
        )
        self.courier = Courier(self.database, self.keys, self.outbound)
        retention = Retention(self.database, self.logs, self.reports)
        self.rounds = Rounds(
            [
                Round("recording refusals", 1.0, self.denials.flush),
                Round("removing what is too old", EVERY_SECONDS, retention.step),
            ]
        )

        self.couriers = Rounds([Round("delivering webhooks", 1.0, self.courier.step)])
        self.metrics = Metrics(self.database)

    def start(self, url: str) -> None:
        """Take up the work that is there; `url` is where workers reach the server."""
        with self.database.write() as session:
            if self.database.is_sqlite or not leases.alive(session):
                environments.forget_processes(session)  # else they may be another server's
        with self.database.read() as session:
            waiting = environments.page(
                session, status=lifecycle.REGISTERED, vertical=None, after=0, limit=None
            )
        for row in waiting:
            if row.latest.source is not None:
                self.envhost.start_soon(row.latest.id)
        self.idle.start()
        self.scheduler.start(url)
        self.rounds.start()
        self.couriers.start()

    def _seal_found_chains(self) -> None:
        with self.database.write() as session:
            for organisation in audit.seal_found(session):
                logger.warning(
                    "the audit chain of organisation %s had no seal, and is sealed as it was found",
                    organisation,
                )

    def checks(self) -> dict[str, str | None]:
        """What has to work for requests to be served, with its problem where it has one."""
        return {
            "database": self.database.problem(),
            "scheduler": None if self.scheduler.is_running else "it is not running",
            "requests": "the server is stopping" if self.draining else None,
        }

    def drain(self) -> None:
        """Say that others should be asked, end what waits, and start nothing any more."""
        self.draining = True
        self.feed.close()
        # Requests that wait for a start would outlast any patience.
        self.envhost.start_no_more()

    def hurry(self) -> None:
        """End every child process at once; may be called while `stop` waits for them."""
        self._children.kill()

    def stop(self) -> None:
        """End every worker and every environment process, then close the database."""
        with ExitStack() as last_first:  # each is done, whatever happens to the others
            last_first.callback(self.database.close)
            last_first.callback(self.denials.flush, everything=True)
            last_first.callback(self.rounds.stop)
            last_first.callback(lambda: self.courier.close())
            last_first.callback(self.couriers.stop)
            last_first.callback(self._children.close)
            last_first.callback(self.envhost.close)
            last_first.callback(self.idle.close)
            last_first.callback(self.scheduler.stop)
