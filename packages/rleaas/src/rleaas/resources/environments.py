"""Environments: register, find, list."""

from __future__ import annotations

from builtins import list as list_
from collections.abc import Mapping, Sequence

from rlcore import Deadline

from rleaas._binding import D, Resource, call, stream
from rleaas._flow import request as build
from rleaas._flow.decode import decode, read
from rleaas._flow.poll import require_seconds
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow, Stream
from rleaas.models import EndpointGrant, Environment, EnvironmentVersion, Shape
from rleaas.models.environment import (
    DOMAIN_OF_VERTICAL,
    ENVIRONMENT_STATUSES,
    VERTICAL_OF_DOMAIN,
)
from rleaas.models.environment_parts import RepositoryCheck, RepositoryConfig
from rleaas.resources import environment_parts as parts
from rleaas.resources import environment_routes as routes
from rleaas.resources.environment_handle import EnvironmentResource
from rleaas.resources.environment_routes import EnvironmentRef, reference, version_reference
from rleaas.resources.pages import collect, iterate
from rleaas.resources.references import IdRef, ids_of, plain, require_one_of, texts_of

JsonObjects = Sequence[Mapping[str, object]]


class EnvironmentsClient(Resource[D]):
    """The environments of the platform."""

    @call
    def create(
        self,
        name: str,
        description: str = "",
        tools: JsonObjects | None = None,
        scenarios: JsonObjects | None = None,
        verifiers: Sequence[IdRef] | None = None,
        simulations: Sequence[str] | None = None,
        vertical: str | None = None,
        domain: str | None = None,
        config: Mapping[str, object] | None = None,
        owner: str = "",
        sdk: str = "gradio",
        compute: str = "cpu-basic",
        license: str = "",
        tags: Sequence[str] | None = None,
        infrastructure: Mapping[str, object] | None = None,
        verifier_configs: Mapping[str, object] | None = None,
        source: str = "custom",
        repo: Mapping[str, object] | None = None,
        *,
        kwargs: Mapping[str, object] | None = None,
        metadata: Mapping[str, object] | None = None,
    ) -> Flow[EnvironmentResource[D]]:
        """Register an environment, or update the one of this name; return its handle at once.

        The platform brings it up in the background: `wait_until_ready()` waits for that. What
        changes how it is served, such as another source, makes a new version.

        Args:
            name: a letter, then printable characters, spaces and `/` among them.
            description: what it is for.
            tools: descriptions of its tools.
            scenarios: descriptions of its scenarios.
            verifiers: its verifiers, by id, name or handle.
            simulations: names of its simulations.
            vertical: such as `FinSim`; found from the domain where that says it.
            domain: such as `finance`; found from the vertical where that says it.
            config: settings of the environment.
            owner: who answers for it.
            sdk: how it was made.
            compute: the machine it asks for.
            license: of its content.
            tags: for finding it.
            infrastructure: where it is to run.
            verifier_configs: settings by verifier id.
            source: `gym://ID`, `python://module:attribute`, `sim://FinSim`, or where it is served
                already (`tcp://`, `unix://`); `custom` serves the built-in world of its vertical,
                if there is one, which `config` is about: `face` (`discrete` or `text`),
                `org_size`, `complexity_ceiling`, `split`, `data_version`, and what else the world
                knows. A published word without effect there is kept, and in `warnings`.
            repo: where its code is kept.
            kwargs: for the maker of the source, such as `{"max_episode_steps": 200}`.
            metadata: free facts about it.

        Raises:
            InvalidRequestError: the platform refuses the name, the source or a field.
        """
        vertical, domain = _matched(vertical, domain)
        optional: dict[str, object | None] = {
            "vertical": vertical,
            "category": vertical,
            "domain": domain,
            "config": config,
            "tags": None if tags is None else texts_of(tags, "tags"),
            "infrastructure": infrastructure,
            "verifier_configs": verifier_configs,
            "repo": None if repo is None else parts.repository_body(repo),
            "kwargs": kwargs,
            "metadata": metadata,
        }
        body: dict[str, object] = {
            "name": name,
            "description": description,
            "tools": plain(tools or ()),
            "scenarios": plain(scenarios or ()),
            "verifiers": ids_of(verifiers or (), "verifier"),
            "simulations": texts_of(simulations or (), "simulations"),
            "owner": owner,
            "sdk": sdk,
            "compute": compute,
            "license": license,
            "source": source,
            **{field: plain(value) for field, value in optional.items() if value is not None},
        }
        build.segment(name, "environment name")
        request = build.post("/api/custom-environments", body, key=self._context.new_key())
        reply = yield from ask(request, self._context)
        if _is_record(decode(request, reply)):
            return self._handle(read(Environment, request, reply))
        # An older server only says `created`, which is no status of an environment.
        return self._handle((yield from routes.get(name, self._context)))

    register_environment = create

    @call
    def get(self, identifier: EnvironmentRef | EnvironmentVersion) -> Flow[EnvironmentResource[D]]:
        """Return the handle of the environment with this name or id; `name@2` is as it was then.

        Raises:
            EnvironmentNotFound: there is none.
        """
        return self._handle((yield from routes.get(version_reference(identifier), self._context)))

    @call
    def list(
        self,
        status: str | None = None,
        vertical: str | None = None,
        category: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        cursor: str | None = None,
    ) -> Flow[list_[EnvironmentResource[D]]]:
        """Return the environments, oldest first; all of them, or at most `limit`.

        Args:
            status: only those with this status: `registered`, `provisioning`, `ready`, `failed` or
                `deprovisioned`.
            vertical: only those of this vertical.
            category: an older word for vertical.
            limit: how many at most.
            offset: how many to leave out at the beginning.
            cursor: where to go on, as the platform gave it.
        """
        records = yield from collect(
            Environment,
            "/api/environments",
            {**_filters(status, vertical or category), "offset": offset},
            "environments",
            self._context,
            limit=limit,
            cursor=cursor,
        )
        return [self._handle(record) for record in records]

    @stream
    def iterate(
        self, status: str | None = None, vertical: str | None = None
    ) -> Stream[Environment]:
        """Yield the records that `list` would return, asking for them as they are read."""
        yield from iterate(
            Environment,
            "/api/environments",
            _filters(status, vertical),
            "environments",
            self._context,
        )

    @call
    def versions(self, environment: EnvironmentRef) -> Flow[list_[EnvironmentVersion]]:
        """Return every version of an environment, oldest first.

        Raises:
            EnvironmentNotFound: there is no such environment.
        """
        return (yield from parts.versions(reference(environment), self._context))

    @call
    def validate_repo(
        self,
        repo_url: str,
        branch: str = "main",
        auth_type: str = "none",
        username: str = "",
        token: str = "",
    ) -> Flow[RepositoryCheck]:
        """Have the platform ask a repository for its branch; nothing is kept."""
        return (
            yield from parts.validate_repository(
                repo_url, branch, auth_type, username, token, self._context
            )
        )

    @call
    def save_repo_config(
        self,
        env_name: EnvironmentRef,
        provider: str = "github",
        repo_url: str = "",
        branch: str = "main",
        context_path: str = "",
        auth_type: str = "none",
        username: str = "",
        token: str = "",
    ) -> Flow[RepositoryConfig]:
        """Keep where an environment's code is; the token is stored encrypted and never told.

        Raises:
            EnvironmentNotFound: there is no such environment.
        """
        name = reference(env_name)
        return (
            yield from parts.save_repository(
                name,
                provider,
                repo_url,
                branch,
                context_path,
                auth_type,
                username,
                token,
                self._context,
            )
        )

    @call
    def load_repo_config(self, env_name: EnvironmentRef) -> Flow[RepositoryConfig]:
        """Return where an environment's code is, without the token.

        Raises:
            NotFoundError: there is no such environment, or none was saved.
        """
        name = reference(env_name)
        path = "/api/environments/{}/repo"
        return (yield from parts.load(RepositoryConfig, path, name, self._context))

    @call
    def endpoint(
        self,
        environment: EnvironmentRef | EnvironmentVersion,
        version: int | None = None,
        *,
        timeout: float | None = None,
    ) -> Flow[EndpointGrant]:
        """Return where an environment is served, with a token; it is brought up if needed.

        Args:
            environment: by name, id or handle; or one of its versions.
            version: an older version instead of the current one.
            timeout: seconds for all of it, attempts after failures included.

        Raises:
            EnvironmentNotFound: there is no such environment or version.
            EnvironmentFailed: it does not come up.
            PlatformTimeout: it takes longer than the timeout.
        """
        require_seconds("timeout", timeout, "reach an environment")
        deadline = Deadline.after(timeout, clock=self._context.clock)
        name = version_reference(environment)
        return (yield from routes.endpoint(name, version, self._context, deadline))

    @call
    def delete(self, environment: EnvironmentRef, confirm: bool = False) -> Flow[Shape]:
        """Delete an environment for good, with its jobs, checkpoints and evaluations.

        Raises:
            ConfigurationError: without `confirm=True`; nothing was sent.
            EnvironmentNotFound: there is no such environment.
            ConflictError: unfinished jobs use it.
        """
        return (yield from routes.delete(reference(environment), confirm, self._context))

    def _handle(self, record: Environment) -> EnvironmentResource[D]:
        return EnvironmentResource(self._driver, record)


def _matched(vertical: str | None, domain: str | None) -> tuple[str | None, str | None]:
    if vertical is None and domain is not None:
        vertical = VERTICAL_OF_DOMAIN.get(domain)
    elif domain is None and vertical is not None:
        domain = DOMAIN_OF_VERTICAL.get(vertical)
    return vertical, domain


def _filters(status: str | None, vertical: str | None) -> dict[str, str | int | None]:
    if status is not None:
        require_one_of(status, ENVIRONMENT_STATUSES, "a status of an environment")
    return {"status": status, "category": vertical}


def _is_record(answer: object) -> bool:
    return isinstance(answer, dict) and ("id" in answer or "environment_id" in answer)
