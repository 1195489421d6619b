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
from rleaas.models import (
    Shape,
    Verifier,
    VerifierAudit,
    VerifierResult,
    VerifierType,
    VerifierVersion,
)
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
            verifier_type: `rule_based`, `trajectory_based`, `llm_judge`, `composite`, `python` or
                `human_evaluation`; hyphens will do.
            environment: what it is made for, by name, id or handle; empty: nothing in particular.
            env_id: the same.
            config: what it judges by; of a function under `@rleaas.verifier`, its `source()`.
            description: what it is for.
            system: the system that it is about.
            verifier_id: an id of your own.
            failure_policy: `hard_fail`, `penalty` and `log_failure`.
            status: `disabled` for one that is not to judge yet.
            metadata: free facts about it.

        Raises:
            ConfigurationError: the type is none; nothing was sent.
            EnvironmentNotFound: there is no such environment.
            InvalidRequestError: the platform refuses a field, or a condition that cannot be read:
                a caret shows where.
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

        A step may also have `arguments`, `reward`, `observation`, `action` and `info`. The result
        has the score, whether it passed, each check in `breakdown`, and an explanation. One that
        could not judge says so in `outcome`: `grader_error`, with neither a score nor a pass.

        Raises:
            VerifierNotFound: there is none.
            InvalidRequestError: a step makes no sense, the verifier is incomplete, or no judge is
                configured.
            UnsupportedRequestError: people judge by verifiers of this type.
        """
        text = id_of(verifier_id, routes.KIND)
        return (yield from routes.test(text, state, trajectory, self._context))

    @call
    def audit(
        self,
        verifier_id: IdRef,
        good: Sequence[Mapping[str, object]] = (),
        bad: Sequence[Mapping[str, object]] = (),
        *,
        environment: EnvironmentRef | None = None,
        scenario_ids: Sequence[IdRef] | None = None,
        repeats: int = 3,
        allow_empty: bool = False,
        most_wrong: float = 0.0,
    ) -> Flow[VerifierAudit]:
        """Test a verifier with episodes whose worth is known, and with tricks on them.

        The report has the rates of false positives and false negatives with their intervals, and
        what was wrong. It is kept; passed, it makes the verifier audited until what it judges by
        changes.

        Args:
            verifier_id: the verifier.
            good: episodes that have to pass, as `{"state": {...}, "trajectory": [...]}`.
            bad: episodes that have to fail.
            environment: take the references and known-bad solutions of its scenarios as well.
            scenario_ids: of these scenarios only.
            repeats: how often each episode is judged; it has to say the same.
            allow_empty: whether an episode in which nothing happened may pass.
            most_wrong: the share of known episodes that may be judged wrongly.

        Raises:
            InvalidRequestError: there are no good or no bad episodes, or no judge is configured.
            VerifierNotFound: there is none.
        """
        body = routes.audit_body(
            good, bad, environment, scenario_ids, repeats, allow_empty, most_wrong
        )
        return (yield from routes.audit(id_of(verifier_id, routes.KIND), body, self._context))

    @call
    def audits(self, verifier_id: IdRef) -> Flow[list_[VerifierAudit]]:
        """Return what a verifier's audits found, newest first.

        Raises:
            VerifierNotFound: there is none.
        """
        return (yield from routes.audits(id_of(verifier_id, routes.KIND), self._context))

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
