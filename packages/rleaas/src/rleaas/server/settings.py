"""What an operator decides about a server, settled before it starts."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from platformdirs import user_data_path
from rlcore import ConfigurationError, Secret

from rleaas.llm import ModelEndpoint, chat_of
from rleaas.server.jobs.ray_cluster import RayCluster

API_KEY_VARIABLE = "RLEAAS_SERVER_API_KEY"
DATABASE_VARIABLE = "RLEAAS_DATABASE_URL"
ARTIFACTS_VARIABLE = "RLEAAS_ARTIFACTS_URL"
ALLOW_CODE_VARIABLE = "RLEAAS_ALLOW_CODE"
JUDGE_KEY_VARIABLE = "RLEAAS_JUDGE_KEY"
AGENT_KEY_VARIABLE = "RLEAAS_AGENT_KEY"
DATABASE_FILE = "rleaas.db"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Where the data is, who may ask, and how much runs at once.

    Attributes:
        data_dir: the directory of the database, the checkpoints and the logs.
        api_key: a key that may do everything, beside those in the database.
        needs_keys: whether callers need a key even where there is no `api_key`; where neither is,
            the server is open.
        database_url: a database elsewhere, such as `postgresql://user@host/name`; by default a
            SQLite file in the data directory.
        artifacts_url: where the files of checkpoints lie, such as `s3://bucket/prefix`; by default
            in the data directory.
        is_local: whether it is for this machine only, so that requests must name a host of it.
        max_workers: how many jobs run at the same time.
        max_restarts: how often a job is started again after its worker has died.
        worker_patience: for how many seconds workers, and the environments that they step, go on
            when the server dies; None: they end with it at once.
        job_memory_bytes: how much memory a worker may use; None is no limit.
        ready_timeout: seconds that an environment may take to come up.
        idle_seconds: after how long without anybody who needs it an environment is stopped, until
            somebody does; None never.
        allowed_hosts: hosts, as `name` or `name:port`, that requests of the server may go to though
            they are not public.
        allow_code: whether every organisation may register sources that are code, and send reward
            functions in Python; else only the operator's own.
        judge: the language model of `llm_judge` verifiers; without one they judge nothing.
        agent: the language model that plays in evaluations which name none of their own.
        reward_files: a directory of reward functions, for clients that send the path of one only.
        drain_seconds: how long requests that have begun may go on when the server is told to stop.
        ray: the cluster that workers run in; without one they are processes of this machine.
        public_url: where workers on other hosts reach the server; by default where it listens.
        environments_host: the address of this machine at which environments are served.
    """

    data_dir: Path
    api_key: Secret | None = None
    needs_keys: bool = False
    database_url: str | None = None
    artifacts_url: str | None = None
    is_local: bool = False
    max_workers: int = 2
    max_restarts: int = 3
    worker_patience: float | None = None
    job_memory_bytes: int | None = None
    ready_timeout: float = 60.0
    idle_seconds: float | None = 3600.0
    allowed_hosts: frozenset[str] = frozenset()
    allow_code: bool = False
    judge: ModelEndpoint | None = None
    agent: ModelEndpoint | None = None
    reward_files: Path | None = None
    drain_seconds: float = 2.0
    ray: RayCluster | None = None
    public_url: str | None = None
    environments_host: str = "127.0.0.1"

    @property
    def shares_data(self) -> bool:
        """Whether other servers may use the data directory too, as the database is elsewhere."""
        return self.database_url is not None and not self.database_url.startswith("sqlite")


def default_data_dir() -> Path:
    """The directory that belongs to this user."""
    return user_data_path("rleaas", appauthor=False)


def server_api_key(argument: str | None, environ: Mapping[str, str]) -> Secret | None:
    """The key that callers need: the argument, else `RLEAAS_SERVER_API_KEY`; empty is none."""
    text = argument or environ.get(API_KEY_VARIABLE)
    return Secret(text) if text else None


def database_url(argument: str | None, environ: Mapping[str, str]) -> str | None:
    """Where the database is: the argument, else `RLEAAS_DATABASE_URL`; None: in the data."""
    return argument or environ.get(DATABASE_VARIABLE) or None


def artifacts_url(argument: str | None, environ: Mapping[str, str]) -> str | None:
    """Where artifacts are: the argument, else `RLEAAS_ARTIFACTS_URL`; None: in the data."""
    return argument or environ.get(ARTIFACTS_VARIABLE) or None


def allows_code(argument: bool, environ: Mapping[str, str]) -> bool:
    """Whether every organisation may register code: the argument, or `RLEAAS_ALLOW_CODE` is 1.

    Raises:
        ConfigurationError: the variable is neither 0 nor 1.
    """
    said = environ.get(ALLOW_CODE_VARIABLE) or "0"
    if said not in ("0", "1"):
        raise ConfigurationError(f"{ALLOW_CODE_VARIABLE} is {said!r}, neither 0 nor 1")
    return argument or said == "1"


def judge_endpoint(
    url: str | None, model: str | None, environ: Mapping[str, str]
) -> ModelEndpoint | None:
    """The language model that judges, with its key out of `RLEAAS_JUDGE_KEY`; None: there is none.

    Raises:
        ConfigurationError: one of URL and model is missing, or the URL is none.
    """
    return _endpoint("judge", url, model, environ.get(JUDGE_KEY_VARIABLE))


def agent_endpoint(
    url: str | None, model: str | None, environ: Mapping[str, str]
) -> ModelEndpoint | None:
    """The language model that plays, with its key out of `RLEAAS_AGENT_KEY`; None: there is none.

    Raises:
        ConfigurationError: one of URL and model is missing, or the URL is none.
    """
    return _endpoint("agent", url, model, environ.get(AGENT_KEY_VARIABLE))


def _endpoint(
    what: str, url: str | None, model: str | None, key: str | None
) -> ModelEndpoint | None:
    if not url and not model:
        return None
    if not url or not model:
        raise ConfigurationError(
            f"{'an' if what == 'agent' else 'a'} {what} has a URL and a model",
            hint=f"Give --{what}-url and --{what}-model, or neither of them",
        )
    endpoint = ModelEndpoint(url=url, model=model, key=Secret(key) if key else None)
    chat_of(endpoint)  # refuses a URL that is none
    return endpoint


def database_place(
    data_dir: Path | None, url: str | None, environ: Mapping[str, str]
) -> Path | str:
    """Return the database of a server with these settings: its URL, or its file."""
    data = default_data_dir() if data_dir is None else data_dir
    return database_url(url, environ) or data / DATABASE_FILE


def require_safe_host(host: str, *, has_key: bool, allow_insecure: bool) -> None:
    """Refuse to be reachable from other machines without a key, unless that is wanted.

    Raises:
        ConfigurationError: the host is not a loopback one and nothing protects the server.
    """
    if has_key or allow_insecure or is_loopback(host):
        return
    raise ConfigurationError(
        f"host {host!r} would open this server to other machines without a key",
        code="public_without_key",
        hint=f"Use --require-key, or set {API_KEY_VARIABLE}, or use --host 127.0.0.1",
    )


def environments_at(host: str) -> str:
    """The address at which environments are served.

    Raises:
        ConfigurationError: it stands for many addresses, so that nobody could be told one.
    """
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        raise ConfigurationError(
            f"environments cannot be found at {host}, which stands for every address",
            hint="Give the one address of this machine that other hosts can reach",
        )
    return f"[{host}]" if address.version == 6 else host


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
