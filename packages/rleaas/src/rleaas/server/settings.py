"""What an operator decides about a server, settled before it starts."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from platformdirs import user_data_path
from rlcore import ConfigurationError, Secret

API_KEY_VARIABLE = "RLEAAS_SERVER_API_KEY"
DATABASE_VARIABLE = "RLEAAS_DATABASE_URL"
ALLOW_CODE_VARIABLE = "RLEAAS_ALLOW_CODE"
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
        is_local: whether it is for this machine only, so that requests must name a host of it.
        max_workers: how many jobs run at the same time.
        ready_timeout: seconds that an environment may take to come up.
        idle_seconds: after how long without anybody who needs it an environment is stopped, until
            somebody does; None never.
        allowed_hosts: hosts, as `name` or `name:port`, that requests of the server may go to though
            they are not public.
        allow_code: whether every organisation may register sources that are code; else only the
            operator's own.
        drain_seconds: how long requests that have begun may go on when the server is told to stop.
    """

    data_dir: Path
    api_key: Secret | None = None
    needs_keys: bool = False
    database_url: str | None = None
    is_local: bool = False
    max_workers: int = 2
    ready_timeout: float = 60.0
    idle_seconds: float | None = 3600.0
    allowed_hosts: frozenset[str] = frozenset()
    allow_code: bool = False
    drain_seconds: float = 2.0

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


def allows_code(argument: bool, environ: Mapping[str, str]) -> bool:
    """Whether every organisation may register code: the argument, or `RLEAAS_ALLOW_CODE` is 1.

    Raises:
        ConfigurationError: the variable is neither 0 nor 1.
    """
    said = environ.get(ALLOW_CODE_VARIABLE) or "0"
    if said not in ("0", "1"):
        raise ConfigurationError(f"{ALLOW_CODE_VARIABLE} is {said!r}, neither 0 nor 1")
    return argument or said == "1"


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


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
