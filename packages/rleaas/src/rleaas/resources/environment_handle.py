"""A registered environment, and what can be done with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from rlcore import Deadline, EnvironmentFailed, EnvironmentIdentity

from rleaas._binding import D, call
from rleaas._flow.poll import Wait, wait
from rleaas._flow.wire import Flow, work
from rleaas.models import ENVIRONMENT_FAILURES, READY, EndpointGrant, Environment, Shape
from rleaas.models.deployment import Deployment
from rleaas.resources import environment_routes as routes
from rleaas.resources.deployment_routes import create, from_infrastructure
from rleaas.resources.environment_contents import EnvironmentContents
from rleaas.resources.environment_settings import EnvironmentSettings

if TYPE_CHECKING:
    import rlmesh.numpy


class EnvironmentResource(EnvironmentContents[D], EnvironmentSettings[D]):
    """A registered environment."""

    @property
    def id(self) -> int:
        """The platform's number for it."""
        return self._record.id

    @property
    def name(self) -> str:
        """Its registered name."""
        return self._record.name

    @property
    def status(self) -> str:
        """`registered`, `provisioning`, `ready`, `failed` or `deprovisioned`, when last heard."""
        return self._record.status

    @property
    def status_reason(self) -> str | None:
        """Why it has this status, where there is something to say."""
        return self._record.status_reason

    @property
    def version(self) -> int | None:
        """The number of its current version."""
        return self._record.version

    @property
    def source(self) -> str | None:
        """What is served, such as `gym://CartPole-v1`."""
        return self._record.source

    @property
    def contract_digest(self) -> str | None:
        """The digest of its contract, once it was up."""
        return self._record.contract_digest

    @property
    def identity(self) -> EnvironmentIdentity | None:
        """Name, version and contract digest, once it was up."""
        return self._record.identity

    @property
    def vertical(self) -> str | None:
        """The vertical it belongs to."""
        return self._record.vertical

    @property
    def description(self) -> str:
        """What it is for."""
        return self._record.description

    @property
    def tags(self) -> list[str]:
        """Its tags."""
        return self._record.tags

    @property
    def metadata(self) -> dict[str, object]:
        """Free facts about it."""
        return self._record.metadata

    @property
    def entity_count(self) -> int | None:
        """How many entities it holds, where that is known."""
        return self._record.entity_count

    @property
    def tool_count(self) -> int | None:
        """How many tools it has, where that is known."""
        return self._record.tool_count

    @property
    def scenario_count(self) -> int | None:
        """How many scenarios it has, where that is known."""
        return self._record.scenario_count

    @property
    def created_at(self) -> datetime | None:
        """When it was registered."""
        return self._record.created_at

    def __repr__(self) -> str:
        version = "" if self.version is None else f"@{self.version}"
        return f"<EnvironmentResource {self.name}{version} id={self.id} status={self.status!r}>"

    @call
    def refresh(self) -> Flow[EnvironmentResource[D]]:
        """Ask the platform for the environment as it is now; return this handle.

        Raises:
            EnvironmentNotFound: it was deleted.
        """
        self._record = yield from routes.get(self.name, self._context)
        return self

    @call
    def wait_until_ready(
        self,
        timeout: float | None = 120,
        poll_interval: float | None = None,
        *,
        on_progress: Callable[[Environment], object] | None = None,
        progress: bool | None = None,
    ) -> Flow[EnvironmentResource[D]]:
        """Wait until the environment answers; return this handle.

        It is looked at at once, so a timeout of 0 asks exactly once.

        Args:
            timeout: seconds; None waits as long as it takes.
            poll_interval: seconds between two looks; by default a quarter, and more as it takes
                longer.
            on_progress: called with every record; what it raises ends the wait.
            progress: show a line on stderr; by default where a person watches it.

        Raises:
            EnvironmentFailed: it did not come up, or nothing is there that could; the reason is in
                the error.
            PlatformTimeout: it takes longer than the timeout.
        """

        def look(deadline: Deadline) -> Flow[Environment]:
            self._record = yield from routes.get(self.name, self._context, deadline)
            if self._record.status in ENVIRONMENT_FAILURES:
                raise EnvironmentFailed(
                    self.name,
                    self._record.status_reason or "",
                    hint="Correct its source or kwargs and create it again.",
                )
            if self._record.waits_for_nothing:
                raise EnvironmentFailed(
                    self.name,
                    self._record.status_reason or f"it is {self._record.status}",
                    hint="It does not change by waiting: give it a source, or start it again.",
                )
            return self._record

        yield from wait(
            Wait(
                what=f"environment {self.name!r}",
                look=look,
                finished=lambda record: record.status == READY,
                status=lambda record: record.status,
                describe=lambda record: record.status,
                timeout=timeout,
                interval=poll_interval,
                seen=on_progress,
                progress=progress,
            ),
            self._context,
        )
        return self

    @call
    def endpoint(self, version: int | None = None) -> Flow[EndpointGrant]:
        """Return where the environment is served, with a token; it is brought up if needed.

        Raises:
            EnvironmentFailed: it does not come up.
            EnvironmentNotFound: there is no such version.
        """
        return (yield from routes.endpoint(self.name, version, self._context))

    @call
    def connect(
        self,
        version: int | None = None,
        *,
        connect_timeout_seconds: float | None = 10.0,
        request_timeout_seconds: float | None = 300.0,
    ) -> Flow[rlmesh.numpy.RemoteEnv]:
        """Return the environment as a `gymnasium.Env` that steps it where it is served.

        Args:
            version: an older version instead of the current one.
            connect_timeout_seconds: how long the dialling may take.
            request_timeout_seconds: how long a reset or a step may take.

        Raises:
            EnvironmentFailed: it does not come up.
            IdentityError: what is served is not what was registered.
            MissingDependencyError: the extra `rleaas[mesh]` is not installed.
        """
        grant = yield from routes.endpoint(self.name, version, self._context)
        # Dialling belongs to the other plane, which this one needs only here.
        from rleaas.mesh.connect import dial

        return (
            yield from work(
                lambda: dial(
                    grant,
                    connect_timeout_seconds=connect_timeout_seconds,
                    request_timeout_seconds=request_timeout_seconds,
                )
            )
        )

    @call
    def update(
        self,
        config: Mapping[str, object] | None = None,
        name: str | None = None,
        system: str | None = None,
        category: str | None = None,
    ) -> Flow[EnvironmentResource[D]]:
        """Change what is given, and return this handle, which follows a new name.

        A changed config makes a new version; an empty one is sent as such, None leaves it as it is.

        Raises:
            ConfigurationError: nothing was given; nothing was sent.
            ConflictError: the name is taken.
        """
        if system is not None:
            yield from routes.set_word(self.name, "system", system, self._context)
        if category is not None:
            yield from routes.set_word(self.name, "category", category, self._context)
        if config is not None or name is not None or (system is None and category is None):
            yield from routes.update(self.name, config, name, self._context)
        self._record = yield from routes.get(name or self.name, self._context)
        return self

    @call
    def start(self) -> Flow[EnvironmentResource[D]]:
        """Bring the environment up now, also a deprovisioned one; return this handle.

        Raises:
            EnvironmentFailed: it does not come up.
        """
        yield from routes.act(self.name, "start", self._context)
        self._record = yield from routes.get(self.name, self._context)
        return self

    @call
    def stop(self) -> Flow[EnvironmentResource[D]]:
        """End its processes; whoever needs it next starts it again. Returns this handle."""
        yield from routes.act(self.name, "stop", self._context)
        self._record = yield from routes.get(self.name, self._context)
        return self

    @call
    def deploy(self, infrastructure: Mapping[str, object] | None = None) -> Flow[Deployment]:
        """Record a deployment of the environment, and return the record.

        Args:
            infrastructure: where it is to run; by default what is stored with the environment.

        Raises:
            ConfigurationError: the infrastructure names no provider; nothing was sent.
            InvalidRequestError: the platform refuses a field, or none is stored.
        """
        given = from_infrastructure(self.name, infrastructure)
        return (yield from create(given, self._context))

    @call
    def deprovision(self) -> Flow[Shape]:
        """End its processes until it is started again; its data stays."""
        return (yield from routes.act(self.name, "deprovision", self._context))

    @call
    def delete(self, confirm: bool = False) -> Flow[Shape]:
        """Delete the environment for good, with its jobs, checkpoints and evaluations.

        Raises:
            ConfigurationError: without `confirm=True`; nothing was sent.
            ConflictError: unfinished jobs use it.
        """
        return (yield from routes.delete(self.name, confirm, self._context))
