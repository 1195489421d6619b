"""Verifiers: create, find, list."""

from __future__ import annotations

from builtins import list as list_
from collections.abc import Mapping, Sequence
from typing import get_args

from rleaas._binding import D, Resource, call, stream
from rleaas._flow import request as build
from rleaas._flow.decode import read
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow, Stream
from rleaas.models import Shape, Verifier, VerifierResult, VerifierType, VerifierVersion
from rleaas.resources import verifier_routes as routes
from rleaas.resources.environment_routes import EnvironmentRef
from rleaas.resources.pages import collect, iterate
from rleaas.resources.references import IdRef, environment_of, given, id_of, require_one_of
from rleaas.resources.verifier_handle import VerifierResource

TYPES: tuple[str, ...] = get_args(VerifierType)


class VerifierClient(Resource[D]):
    """The verifiers of the platform."""

    @call
    def create(
        self,
        name: str,
        verifier_type: str,
        environment: EnvironmentRef = "",
        env_id: EnvironmentRef | None = None,
        config: Mapping[str, object] | None = None,
        description: str = "",
        system: str = "Custom",
        verifier_id: str | None = None,
        *,
        failure_policy: Mapping[str, object] | None = None,
        status: str | None = None,
        metadata: Mapping[str, object] | None = None,
    ) -> Flow[VerifierResource[D]]:
        """Add a verifier, or change the one with this id; return its handle.

        Args:
            name: what it is called.
            verifier_type: `rule_based`, `trajectory_based`, `llm_judge` or `composite`; hyphens
                will do.
            environment: what it is made for, by name, id or handle; empty: nothing in particular.
            env_id: the same.
            config: what it judges by.
            description: what it is for.
            system: the system that it is about.
            verifier_id: an id of your own.
            failure_policy: `hard_fail`, `penalty` and `log_failure`.
            status: `disabled` for one that is not to judge yet.
            metadata: free facts about it.

        Raises:
            ConfigurationError: the type is none; nothing was sent.
            EnvironmentNotFound: there is no such environment.
            InvalidRequestError: the platform refuses a field.
        """
        kind = _type(verifier_type)
        place = environment_of(environment, env_id)
        body: dict[str, object] = {
            "id": verifier_id or f"verif_{kind[:4].rstrip('_')}_{self._context.new_key()[:16]}",
            "name": name,
            "type": kind,
            "system": system,
            "environment": place or "",
            "description": description,
            "source": "custom",
            **given(
                logic=config or {},
                failure_policy=failure_policy,
                status=status,
                metadata=metadata,
            ),
        }
        request = build.post(
            "/api/verifiers", body, key=self._context.new_key(), kind="environment", ref=place
        )
        reply = yield from ask(request, self._context)
        return self._handle(read(Verifier, request, reply))

    @call
    def get(self, verifier_id: IdRef) -> Flow[VerifierResource[D]]:
        """Return the handle of the verifier with this id.

        Raises:
            VerifierNotFound: there is none.
        """
        text = id_of(verifier_id, routes.KIND)
        return self._handle((yield from routes.get(text, self._context)))

    @call
    def list(
        self,
        environment: EnvironmentRef | None = None,
        verifier_type: str | None = None,
        system: str | None = None,
    ) -> Flow[list_[VerifierResource[D]]]:
        """Return verifiers, oldest first.

        Args:
            environment: only those made for this environment or attached to it.
            verifier_type: only those of this type.
            system: only those about this system, whatever the case.

        Raises:
            EnvironmentNotFound: there is no such environment.
        """
        found = yield from collect(
            Verifier,
            "/api/verifiers",
            _params(environment, verifier_type, system),
            "verifiers",
            self._context,
        )
        return [self._handle(record) for record in found]

    @stream
    def iterate(
        self,
        environment: EnvironmentRef | None = None,
        verifier_type: str | None = None,
        system: str | None = None,
    ) -> Stream[Verifier]:
        """Yield the records that `list` would return, asking for them as they are read."""
        yield from iterate(
            Verifier,
            "/api/verifiers",
            _params(environment, verifier_type, system),
            "verifiers",
            self._context,
        )

    @call
    def delete(self, verifier_id: IdRef) -> Flow[Shape]:
        """Delete a verifier with its versions.

        Raises:
            VerifierNotFound: there is none.
        """
        return (yield from routes.delete(id_of(verifier_id, routes.KIND), self._context))

    @call
    def test(
        self,
        verifier_id: IdRef,
        state: Mapping[str, object] | None = None,
        trajectory: Sequence[Mapping[str, object]] | None = None,
    ) -> Flow[VerifierResult]:
        """Judge an episode: the state at its end, and its steps such as `{"tool": "wire"}`.

        Raises:
            VerifierNotFound: there is none.
            UnsupportedRequestError: the server has no engine that judges.
        """
        text = id_of(verifier_id, routes.KIND)
        return (yield from routes.test(text, state, trajectory, self._context))

    @call
    def versions(self, verifier_id: IdRef) -> Flow[list_[VerifierVersion]]:
        """Return what a verifier judged by, oldest first.

        Raises:
            VerifierNotFound: there is none.
        """
        return (yield from routes.versions(id_of(verifier_id, routes.KIND), self._context))

    def _handle(self, record: Verifier) -> VerifierResource[D]:
        return VerifierResource(self._driver, record)


def _type(text: str) -> str:
    return require_one_of(text.strip().lower().replace("-", "_"), TYPES, "a verifier type")


def _params(
    environment: EnvironmentRef | None, verifier_type: str | None, system: str | None
) -> dict[str, str | int | None]:
    return {
        "environment": environment_of(environment),
        "type": None if verifier_type is None else _type(verifier_type),
        "system": system,
    }
