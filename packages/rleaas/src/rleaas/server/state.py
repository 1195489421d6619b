"""The parts of a running server, put together in one place."""

import logging
import os
import secrets
import socket
from contextlib import ExitStack
from pathlib import Path

from rlcore import MissingDependencyError, contract_digest

from rleaas.server.agent_models import AgentModels
from rleaas.server.artifacts.collecting import COLLECTING, ArtifactRound
from rleaas.server.artifacts.store import ArtifactStore
from rleaas.server.asset_files import AssetFiles
from rleaas.server.children import Children
from rleaas.server.courier import Courier
from rleaas.server.denials import Denials
from rleaas.server.envhost.host import EnvironmentHost, Inspect
from rleaas.server.envhost.idle import IdleWatch
from rleaas.server.envhost.inspection import served_contract
from rleaas.server.envhost.process import Launcher, ProcessLauncher
from rleaas.server.exporting import ExportCommand, Exporter, export_command
from rleaas.server.feed import Feed
from rleaas.server.git import Git
from rleaas.server.job_logs import JobLogs
from rleaas.server.jobs.commands import WorkerCommand, worker_command
from rleaas.server.jobs.executor import Executor
from rleaas.server.jobs.local_executor import LocalExecutor
from rleaas.server.jobs.patience import Patience
from rleaas.server.jobs.scheduler import Rules, Scheduler
from rleaas.server.jobs.zygote import Zygote
from rleaas.server.judging import Judging
from rleaas.server.keys import ServerKeys
from rleaas.server.metrics import Metrics
from rleaas.server.outbound import Outbound
from rleaas.server.principals import Principals
from rleaas.server.probes import Probes
from rleaas.server.report_files import ReportFiles
from rleaas.server.retention import EVERY_SECONDS, Retention
from rleaas.server.rollout_files import RolloutFiles
from rleaas.server.rounds import Round, Rounds
from rleaas.server.rules import lifecycle
from rleaas.server.rules.rates import Rates
from rleaas.server.secret_check import require_own_secret
from rleaas.server.settings import DATABASE_FILE, ServerSettings
from rleaas.server.store import audit, environments, leases
from rleaas.server.store.database import Database

logger = logging.getLogger("rleaas.server")

_FAR_PATIENCE_SECONDS = 60.0


class ServerState:
    """Everything that the routes use; `start` before the first request, `stop` after the last."""

    def __init__(
        self,
        settings: ServerSettings,
        *,
        launcher: Launcher | None = None,
        inspect: Inspect = served_contract,
        command: WorkerCommand = worker_command,
        executor: Executor | None = None,
        patience: Patience | None = None,
        export: ExportCommand = export_command,
    ) -> None:
        data = settings.data_dir
        data.mkdir(parents=True, exist_ok=True)
        self.settings = settings
        # Told to stop: what has begun is brought to its end, and nobody else should come.
        self.draining = False
        # Of this start of this process: nobody else will ever be called so.
        self.holder = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self.judging = Judging(settings.judge, data / "judge-answers")
        self.keys = ServerKeys(data / "server.key")
        self._children = Children()
        self.executor = executor or _executor(settings, self._children, data)
        self.database = Database(settings.database_url or data / DATABASE_FILE)
        try:
            self.database.migrate()
            require_own_secret(self.database, self.keys)
            self.database.seal_audit(self.keys.audit)
            self._seal_found_chains()
        except BaseException:
            self.database.close()
            self.executor.close()
            raise
        self.principals = Principals(
            self.database,
            self.keys,
            operator=settings.api_key,
            is_open=settings.api_key is None and not settings.needs_keys,
        )
        self.reports = ReportFiles(data / "reports", self.keys.sign_report)
        self.feed = Feed(self.database)
        self.denials = Denials(self.database)
        self.rates = Rates()
        self.logs = JobLogs(data / "logs" / "jobs")
        self.artifacts = ArtifactStore(
            settings.artifacts_url,
            data / "artifacts",
            self.keys.mark.reveal(),
            shared=settings.shares_data,
        )
        self.rollout_files = RolloutFiles(self.artifacts)
        self.artifact_round = ArtifactRound(self.database, self.artifacts, data)
        self.assets = AssetFiles(data / "assets")
        self.outbound = Outbound(settings.allowed_hosts)
        self.agent_models = AgentModels(settings.agent, self.outbound)
        self.git = Git(self.outbound)
        self.probes = Probes(self.outbound)
        self.envhost = EnvironmentHost(
            self.database,
            launcher
            or ProcessLauncher(
                self._children, settings.environments_host, linger=_worker_patience(settings)
            ),
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
            self.executor,
            self.logs,
            self.keys,
            command=command,
            rules=Rules(
                max_jobs=settings.max_workers,
                max_restarts=settings.max_restarts,
                worker_patience=_worker_patience(settings),
                memory_bytes=settings.job_memory_bytes,
            ),
            patience=patience or _patience(settings),
            holder=self.holder,
        )
        self.exporter = Exporter(
            self.database, self.artifacts, self._children, data / "artifacts", export
        )
        self.courier = Courier(self.database, self.keys, self.outbound)
        retention = Retention(self.database, self.logs, self.reports)
        self.rounds = Rounds(
            [
                Round("recording refusals", 1.0, self.denials.flush),
                Round("removing what is too old", EVERY_SECONDS, retention.step),
                Round(COLLECTING, EVERY_SECONDS, self.artifact_round.step),
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
        self.artifact_round.take_over()
        self.idle.start()
        self.scheduler.start(self.settings.public_url or url)
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
            last_first.callback(self.executor.close)
            last_first.callback(self.envhost.close)
            last_first.callback(self.exporter.close)
            last_first.callback(self.idle.close)
            last_first.callback(self.scheduler.stop)


def _patience(settings: ServerSettings) -> Patience:
    # A server that lives inside another program ends with it, and fast.
    return Patience() if _worker_patience(settings) is not None else Patience(to_stop=3.0)


def _executor(settings: ServerSettings, children: Children, data: Path) -> Executor:
    if settings.ray is None:
        # A server inside another program takes no more of its memory than jobs need.
        lasts = settings.worker_patience is not None
        zygote = Zygote(children, data / "logs" / "zygote.log") if lasts else None
        return LocalExecutor(children, data / "workers", zygote=zygote)
    try:
        from rleaas.server.jobs.ray_executor import RayExecutor
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"jobs in a Ray cluster need {error.name!r}, which is not installed",
            hint="Install the extra: pip install 'rleaas[ray]'",
        ) from error
    return RayExecutor(settings.ray, data / "ray")


def _worker_patience(settings: ServerSettings) -> float | None:
    # Workers on other hosts cannot see that the server is gone, only that it does not answer.
    if settings.worker_patience is None and settings.ray is not None:
        return _FAR_PATIENCE_SECONDS
    return settings.worker_patience
