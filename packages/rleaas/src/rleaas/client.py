"""The two clients: one attribute per resource."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import replace
from ipaddress import ip_address
from types import TracebackType
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from rlcore import (
    Anonymous,
    ClientSettings,
    ConfigurationError,
    Credential,
    Secret,
    resolve_client_settings,
)

from rleaas._drivers.awaiting import Awaiting
from rleaas._drivers.blocking import Blocking
from rleaas._drivers.hooks import Hooks, OnReply, OnRequest
from rleaas._drivers.progress import MakeProgress, progress_for_people
from rleaas._flow.context import Context
from rleaas._flow.poll import require_seconds
from rleaas.resources.sub_clients import SubClients

if TYPE_CHECKING:
    import httpx


class Client(SubClients[Blocking]):
    """A connection to the platform; its methods return when they are done.

    Every setting that is left out is taken from the environment (`RLEAAS_BASE_URL`,
    `RLEAAS_API_KEY`, `RLEAAS_TIMEOUT`, `RLEAAS_RETRIES`, `RLEAAS_PROFILE`), else from the profile
    in `~/.config/rleaas/config.toml`, else it has its default; `settings` says what came from
    where. A local server needs no key. Use it in a `with` block, or `close()` it.

    Args:
        api_key: who is asking.
        base_url: the server, `http://localhost:8000` by default.
        timeout: seconds that one request may take, 30 by default.
        retries: how often a request that is safe to repeat is sent at most, 3 by default.
        profile: the table of the profile file to use.
        transport: carries the requests instead of the network; an `httpx` transport.
        on_request: called with each request before it is sent, attempts after failures included;
            a request holds no credential.
        on_reply: called with each request, its answer, and the seconds that it took.
        progress: makes what shows the progress of each wait, instead of a line on a terminal or a
            bar in a notebook; it has `show(step)` and `close()`.

    Raises:
        ConfigurationError: a setting is not usable.
    """

    def __init__(
        self,
        api_key: str | Secret | None = None,
        base_url: str | None = None,
        timeout: float | None = None,
        retries: int | None = None,
        profile: str | None = None,
        *,
        transport: httpx.BaseTransport | None = None,
        on_request: OnRequest | None = None,
        on_reply: OnReply | None = None,
        progress: MakeProgress | None = None,
    ) -> None:
        self.settings = resolve_client_settings(
            api_key=api_key, base_url=base_url, timeout=timeout, retries=retries, profile=profile
        )
        warn_of_plain_http(self.settings.base_url, self.settings.credential)
        super().__init__(
            Blocking(
                context_of(self.settings),
                self.settings.credential,
                transport,
                hooks=Hooks(on_request, on_reply),
                progress=progress or progress_for_people,
            )
        )

    @property
    def base_url(self) -> str:
        """The server's address."""
        return self.settings.base_url

    def with_timeout(self, seconds: float) -> Self:
        """Return this client with another timeout, over the same connections.

        What it is asked for gets so long for each request, also where this client would give the
        platform longer; so do handles that come from it. Waits and streams have a `timeout` of
        their own. Closing one of the two closes both.

        Args:
            seconds: what one request may take.

        Raises:
            ConfigurationError: it is no number of seconds above 0.
        """
        settings, context = with_timeout(self.settings, self._context, seconds)
        other = copy(self)
        other.settings = settings
        super(Client, other).__init__(self._driver.with_context(context))
        return other

    def close(self) -> None:
        """Give back the connections; later calls raise."""
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client of {self.base_url}>"


class AsyncClient(SubClients[Awaiting]):
    """A connection to the platform whose methods are awaited, under asyncio or trio.

    Its resources and their handles are asynchronous throughout; iterators are read with `async
    for`. Settings are those of `Client`. Use it in an `async with` block, or `await aclose()`.

    Args:
        api_key: who is asking.
        base_url: the server, `http://localhost:8000` by default.
        timeout: seconds that one request may take, 30 by default.
        retries: how often a request that is safe to repeat is sent at most, 3 by default.
        profile: the table of the profile file to use.
        transport: carries the requests instead of the network; an `httpx` transport.
        on_request: called with each request before it is sent, attempts after failures included;
            a request holds no credential.
        on_reply: called with each request, its answer, and the seconds that it took.
        progress: makes what shows the progress of each wait, instead of a line on a terminal or a
            bar in a notebook; it has `show(step)` and `close()`.

    Raises:
        ConfigurationError: a setting is not usable.
    """

    def __init__(
        self,
        api_key: str | Secret | None = None,
        base_url: str | None = None,
        timeout: float | None = None,
        retries: int | None = None,
        profile: str | None = None,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        on_request: OnRequest | None = None,
        on_reply: OnReply | None = None,
        progress: MakeProgress | None = None,
    ) -> None:
        self.settings = resolve_client_settings(
            api_key=api_key, base_url=base_url, timeout=timeout, retries=retries, profile=profile
        )
        warn_of_plain_http(self.settings.base_url, self.settings.credential)
        super().__init__(
            Awaiting(
                context_of(self.settings),
                self.settings.credential,
                transport,
                hooks=Hooks(on_request, on_reply),
                progress=progress or progress_for_people,
            )
        )

    @property
    def base_url(self) -> str:
        """The server's address."""
        return self.settings.base_url

    def with_timeout(self, seconds: float) -> Self:
        """Return this client with another timeout, over the same connections.

        What it is asked for gets so long for each request, also where this client would give the
        platform longer; so do handles that come from it. Waits and streams have a `timeout` of
        their own. Closing one of the two closes both.

        Args:
            seconds: what one request may take.

        Raises:
            ConfigurationError: it is no number of seconds above 0.
        """
        settings, context = with_timeout(self.settings, self._context, seconds)
        other = copy(self)
        other.settings = settings
        super(AsyncClient, other).__init__(self._driver.with_context(context))
        return other

    async def aclose(self) -> None:
        """Give back the connections; later calls raise."""
        await self._driver.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<AsyncClient of {self.base_url}>"


def context_of(settings: ClientSettings) -> Context:
    """Return what a client's flows take from its settings."""
    return Context(base_url=settings.base_url, timeout=settings.timeout, attempts=settings.retries)


def with_timeout(
    settings: ClientSettings, context: Context, seconds: float
) -> tuple[ClientSettings, Context]:
    """Return a client's settings and context with a timeout that holds for every request."""
    if seconds is None:  # pyright: ignore[reportUnnecessaryComparison]  # callers may be untyped
        raise ConfigurationError("a request needs a timeout", hint="Pass seconds.")
    require_seconds("timeout", seconds, "wait for an answer", zero_too=False)
    sources = {**settings.sources, "timeout": "with_timeout"}
    return (
        replace(settings, timeout=float(seconds), sources=sources),
        replace(context, timeout=float(seconds), exact=True),
    )


def warn_of_plain_http(base_url: str, credential: Credential) -> None:
    """Warn when a key would cross the network in the clear."""
    parts = urlsplit(base_url)
    if parts.scheme == "https" or isinstance(credential, Anonymous) or _is_local(parts.hostname):
        return
    warnings.warn(
        f"the API key goes to {base_url} over plain http, readable on the way; use https://",
        UserWarning,
        stacklevel=3,
    )


def _is_local(host: str | None) -> bool:
    if host is None or host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
