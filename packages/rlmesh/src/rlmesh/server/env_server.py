"""Serve an environment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from rlcore import CallTimeout, EnvironmentException, Secret
from rlcore.log import logger

from rlmesh.server.edition_options import with_edition
from rlmesh.server.environments import Environments, environments_of
from rlmesh.server.factories import declared, told, usable
from rlmesh.server.framework import action_backend
from rlmesh.server.lifetime import Lifetime
from rlmesh.server.option_checks import require_port
from rlmesh.server.options import ServeOptions
from rlmesh.server.protection import TlsOption, access_for, require_protection, tls_for
from rlmesh.server.service import EnvService
from rlmesh.server.startup import STARTUP
from rlmesh.server.vector_sources import many_of, several
from rlmesh.specs import EnvContract
from rlmesh.transport.addresses import Address, parse_bind
from rlmesh.transport.host import Host
from rlmesh.transport.limits import allow_files

if TYPE_CHECKING:
    from rlmesh.server.metrics import MetricsEndpoint

log = logger("rlmesh", "server")


class EnvServer(Lifetime):
    """Serves an environment, or a factory of environments, at one address.

    An environment is one for all: clients step it one after another. A factory (a class, a
    function, or an object with `make`) gives each client an environment of its own. The address is
    taken by the constructor; `start`, `serve` or entering the context begins to serve.

    A list of environments is served as lanes, which clients step together (`RemoteVectorEnv`) or by
    themselves; so is a vector environment, gymnasium's or any with `num_envs` and
    `single_observation_space`, but that one steps all of its lanes together. All lanes of a session
    are called in its thread, in order: when one raises in a step of all, those before it have been
    stepped and those after it have not. What has one lane is served as a single environment.

    Args:
        env: the environment, a list of environments, or the factory of either.
        address: `tcp://HOST:PORT`, `HOST:PORT`, a port, or `unix:///PATH`; by default a free port
            on the loopback interface.
        host: the host, instead of an address.
        port: the port, instead of an address.
        path: the socket file, instead of an address.
        transport: `tcp` or `unix`, where `host`, `port` or `path` leave it open.
        options: limits.
        num_envs: how many environments a factory makes for each client, which are its lanes.
        vectorization_mode: what steps them: `lanes` (the default): the server, one after another,
            so that each can be stepped by itself; `sync` and `async`: gymnasium's vector
            environments, the latter with a process for each lane. These processes run the script
            that serves again, so it has to do that under `if __name__ == "__main__":`.
        autoreset_mode: what happens at the end of a lane's episode: `next_step`, `same_step` or
            `disabled`; by default nothing, and with `sync` and `async` as gymnasium has it.
        framework: whose arrays actions arrive as: `numpy` (the default), `torch` or `jax`.
            Observations, rewards and flags are taken in any of them.
        device: where a framework's arrays are put, such as `"cuda:0"`.
        close_env_on_shutdown: whether a shared environment is closed when the server stops.
        token: what clients have to show; by default what RLMESH_TOKEN holds.
        token_key: the key of the signed tokens that clients may show instead.
        token_subject: the subject that signed tokens must be for; None: any.
        tls: `"auto"` for a certificate made for this server, which clients pin; (cert, key) or
            (cert, key, client CA) files; or a `ServerTls`; by default what RLMESH_SERVE_TLS says.
        allow_insecure: whether other machines may reach it without a token and without TLS.
        metrics_port: a port on the loopback interface where Prometheus can scrape what the server
            is doing; 0: a free one; None: nowhere.
        workflow_edition: the edition the environment was written for; see `rlmesh.workflow`.
        peer_extra: what clients are told about the server at their handshakes, beside the rest; it
            may grow while the server runs.

    Raises:
        AddressError: the address cannot be understood.
        BindError: the address is taken or not allowed.
        ConfigurationError: it is public and has neither token nor TLS, or an option is wrong.
        MissingDependencyError: the framework is not installed.
        EnvironmentException: the factory raised.
        TypeError: what was given is no environment.
    """

    def __init__(
        self,
        env: object,
        address: str | None = None,
        *,
        host: str | None = None,
        port: int | None = None,
        path: str | None = None,
        transport: str | None = None,
        options: ServeOptions | None = None,
        num_envs: int | None = None,
        vectorization_mode: str | None = None,
        autoreset_mode: object = None,
        framework: str | None = None,
        device: object = None,
        close_env_on_shutdown: bool = True,
        token: str | Secret | None = None,
        token_key: str | Secret | None = None,
        token_subject: str | None = None,
        tls: TlsOption = None,
        allow_insecure: bool = False,
        metrics_port: int | None = None,
        workflow_edition: str | None = None,
        peer_extra: Mapping[str, str] | None = None,
    ) -> None:
        if metrics_port is not None:
            require_port("metrics_port", metrics_port)
        place = parse_bind(address, host=host, port=port, path=path, transport=transport)
        access = access_for(token, token_key, token_subject)
        self._tls = tls_for(tls, place)
        if not allow_insecure:
            require_protection(place, access, self._tls)
        many = many_of(num_envs, vectorization_mode, autoreset_mode)
        env = usable(env)
        framework = framework or declared(env, "framework")
        self._options = with_edition(
            options or ServeOptions(), workflow_edition, declared(env, "workflow_edition")
        )
        backend = action_backend(framework, device)
        self._environments: Environments
        if self._options.isolation == "process":
            # Few servers start processes; the others need not load what does.
            from rlmesh.server.isolation import Isolated
            from rlmesh.server.main_script import require_first_run
            from rlmesh.server.recipes import Recipe

            require_first_run()
            self._environments = Isolated(
                Recipe(env, many, framework, device),
                start_seconds=self._options.env_start_seconds,
                close_seconds=self._options.close_seconds,
            )
        else:
            self._environments = environments_of(
                several(env, many), close_at_end=close_env_on_shutdown, backend=backend
            )
        files = allow_files(self._options.max_sessions)
        if files is not None:
            log.warning(
                "%d sessions may need more open files than the %d that this process may have; "
                "raise its limit (ulimit -n), or lower max_sessions",
                self._options.max_sessions,
                files,
            )
        about = told(env, self._environments.contract)
        STARTUP.mark("env")
        self._service = EnvService(
            self._environments,
            options=self._options,
            may_be_stopped=self._may_be_stopped,
            stop=self._shut_down_quietly,
            extra=lambda: {**about, **(peer_extra or {})},
        )
        self._be_born()
        self._metrics: MetricsEndpoint | None = None
        try:
            if metrics_port is not None:
                # Few serve metrics, and the web server they need takes long to import.
                from rlmesh.server.metrics import MetricsEndpoint

                self._metrics = MetricsEndpoint(self._service.registry, port=metrics_port)
            self._host = Host(
                place,
                self._service,
                access=access,
                max_sessions=self._options.max_sessions,
                message_limit=self._options.max_message_bytes,
                lane_port=self._options.lane_port if self._options.lanes else None,
                answer_bytes=self._service.answer_bytes,
                tls=self._tls,
                inspect=self._service.inspection.status if self._options.inspectable else None,
            )
        except BaseException:
            self._stop_metrics()
            self._environments.close()
            raise
        self._service.offer = self._host.offer
        self._address: Address = self._host.address

    @property
    def address(self) -> str:
        """Where clients dial, with the port that was taken."""
        return str(self._address)

    @property
    def metrics_address(self) -> str | None:
        """Where Prometheus scrapes, or None without `metrics_port`."""
        return None if self._metrics is None else self._metrics.address

    @property
    def env_contract(self) -> EnvContract:
        """What the server promises about the environment."""
        return self._environments.contract

    @property
    def in_use(self) -> bool:
        """Whether clients have sessions."""
        return bool(self._service.registry.all())

    def inspect(self) -> dict[str, object]:
        """Return what the server is doing, as plain data.

        `environment`, `digest` and `version` say what is served; `uptime_seconds` how long.
        `private_sessions` says whether each session has an environment of its own, `places` how
        many sessions there may be at once, `places_taken` how many are taken, `waiting` how many
        clients queue for one, and `lease_seconds` how long a session outlives its client.
        `sessions` is a list of what each session is and has done; `total` is what all have done,
        those included that have ended: requests, steps, episodes, faults by code, latencies in
        seconds and bytes by carrier.
        """
        return self._service.inspection.status()

    def __repr__(self) -> str:
        return f"EnvServer({self.env_contract.id!r}, address={self.address!r})"

    def collect_close_failures(self, collect: Callable[[EnvironmentException], None]) -> None:
        """Hand over, from now on, why environments of sessions did not close in their processes."""
        told = getattr(self._environments, "collect", None)
        if told is not None:
            told(collect)

    def _open(self) -> None:
        self._host.start()
        if self._metrics is not None:
            self._metrics.start()

    def _end(self) -> None:
        self._stop_metrics()

    def _idle_since(self) -> float:
        return self._service.idle_since()

    def _stop_metrics(self) -> None:
        if self._metrics is not None:
            self._metrics.stop()

    def _drain(self) -> None:
        self._host.refuse_new_calls()
        self._wait_while(self._service.busy, self._options.drain_seconds)
        self._host.stop()
        if not self._wait_while(self._service.sessions, self._options.close_seconds):
            raise CallTimeout(
                f"{len(self._service.sessions())} session(s) of the server at {self.address} "
                "are still inside the environment",
                operation="shutdown",
                seconds=self._options.drain_seconds + self._options.close_seconds,
                layer="shutdown",
                hint="The environment hangs; its thread ends with the process.",
            )
        self._close_environments()

    def _close_environments(self) -> None:
        failures: list[EnvironmentException] = []

        def close() -> None:
            try:
                self._environments.close()
            except EnvironmentException as error:
                failures.append(error)

        # On a thread of its own, because a close that hangs must not hang the shutdown.
        closing = threading.Thread(target=close, daemon=True)
        closing.start()
        closing.join(self._options.close_seconds)
        if closing.is_alive():
            raise CallTimeout(
                f"the environment of the server at {self.address} did not close in time",
                operation="close",
                seconds=self._options.close_seconds,
                layer="shutdown",
                hint="Raise close_timeout_seconds if it is only slow.",
            )
        if failures:
            raise failures[0]
