"""A verifier, and what can be done with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rleaas._binding import D, call
from rleaas._flow.wire import Flow
from rleaas.models import (
    FailurePolicy,
    Shape,
    Verifier,
    VerifierAudit,
    VerifierResult,
    VerifierVersion,
)
from rleaas.resources import verifier_routes as routes
from rleaas.resources.environment_routes import EnvironmentRef
from rleaas.resources.handle import Handle
from rleaas.resources.references import IdRef


class VerifierResource(Handle[D, Verifier]):
    """What judges episodes."""

    @property
    def id(self) -> str:
        """Its id."""
        return self._record.id

    @property
    def name(self) -> str:
        """Its name."""
        return self._record.name

    @property
    def type(self) -> str:
        """What it judges by: `rule_based`, `llm_judge` and so on."""
        return self._record.type

    @property
    def system(self) -> str:
        """The system that it is about."""
        return self._record.system

    @property
    def environment(self) -> str:
        """The name of the environment that it was made for; empty: none."""
        return self._record.environment

    @property
    def status(self) -> str:
        """`active` or `disabled`, when last heard."""
        return self._record.status

    @property
    def description(self) -> str:
        """What it is for."""
        return self._record.description

    @property
    def logic(self) -> dict[str, object]:
        """What it judges by."""
        return self._record.logic

    @property
    def metadata(self) -> dict[str, object]:
        """Free facts about it."""
        return self._record.metadata

    @property
    def failure_policy(self) -> FailurePolicy:
        """What follows when an episode fails."""
        return self._record.failure_policy

    @property
    def audited(self) -> bool | None:
        """Whether an audit of what it judges by passed, when last heard; None: not told."""
        return self._record.audited

    @property
    def version(self) -> int | None:
        """The number of what it judges by."""
        return self._record.version

    def __repr__(self) -> str:
        return f"<VerifierResource {self.name!r} id={self.id} type={self.type} {self.status}>"

    @call
    def refresh(self) -> Flow[VerifierResource[D]]:
        """Ask the platform for the verifier as it is now; return this handle."""
        self._record = yield from routes.get(self.id, self._context)
        return self

    @call
    def update(self, /, **fields: object) -> Flow[VerifierResource[D]]:
        """Change the fields that are given, and only those; return this handle, changed whole.

        Raises:
            InvalidRequestError: a field is not what it can be.
            VerifierNotFound: it was deleted.
        """
        self._record = yield from routes.update(self.id, fields, self._context)
        return self

    @call
    def duplicate(self) -> Flow[VerifierResource[D]]:
        """Add a verifier that judges the same, and return its handle."""
        made = yield from routes.duplicate(self.id, self._context)
        return VerifierResource(self._driver, made)

    @call
    def disable(self) -> Flow[VerifierResource[D]]:
        """Let it judge no more, until it is enabled; return this handle."""
        self._record = yield from routes.switch(self.id, False, self._context)
        return self

    @call
    def enable(self) -> Flow[VerifierResource[D]]:
        """Let it judge again; return this handle."""
        self._record = yield from routes.switch(self.id, True, self._context)
        return self

    @call
    def delete(self) -> Flow[Shape]:
        """Delete it with its versions."""
        return (yield from routes.delete(self.id, self._context))

    @call
    def test(
        self,
        state: Mapping[str, object] | None = None,
        trajectory: Sequence[Mapping[str, object]] | None = None,
    ) -> Flow[VerifierResult]:
        """Judge an episode: the state at its end, and its steps such as `{"tool": "wire"}`.

        A step may also have `arguments`, `reward`, `observation`, `action` and `info`. The result
        has the score, whether it passed, each check in `breakdown`, and an explanation. One that
        could not judge says so in `outcome`: `grader_error`, with neither a score nor a pass.

        Raises:
            InvalidRequestError: a step makes no sense, the verifier is incomplete, or no judge is
                configured.
            UnsupportedRequestError: people judge by verifiers of this type.
        """
        return (yield from routes.test(self.id, state, trajectory, self._context))

    @call
    def audit(
        self,
        good: Sequence[Mapping[str, object]] = (),
        bad: Sequence[Mapping[str, object]] = (),
        *,
        environment: EnvironmentRef | None = None,
        scenario_ids: Sequence[IdRef] | None = None,
        repeats: int = 3,
        allow_empty: bool = False,
        most_wrong: float = 0.0,
    ) -> Flow[VerifierAudit]:
        """Test it with episodes whose worth is known, and with tricks on them.

        The report has the rates of false positives and false negatives with their intervals, and
        what was wrong. It is kept; passed, it makes the verifier audited until what it judges by
        changes.

        Args:
            good: episodes that have to pass, as `{"state": {...}, "trajectory": [...]}`.
            bad: episodes that have to fail.
            environment: take the references and known-bad solutions of its scenarios as well.
            scenario_ids: of these scenarios only.
            repeats: how often each episode is judged; it has to say the same.
            allow_empty: whether an episode in which nothing happened may pass.
            most_wrong: the share of known episodes that may be judged wrongly.

        Raises:
            InvalidRequestError: there are no good or no bad episodes, or no judge is configured.
        """
        body = routes.audit_body(
            good, bad, environment, scenario_ids, repeats, allow_empty, most_wrong
        )
        return (yield from routes.audit(self.id, body, self._context))

    @call
    def audits(self) -> Flow[list[VerifierAudit]]:
        """Return what its audits found, newest first."""
        return (yield from routes.audits(self.id, self._context))

    @call
    def versions(self) -> Flow[list[VerifierVersion]]:
        """Return what it judged by, oldest first."""
        return (yield from routes.versions(self.id, self._context))

    @call
    def attach(self, environment: EnvironmentRef, weight: float = 1.0) -> Flow[Shape]:
        """Let it judge an environment, with a share of the score; again, with another one.

        Raises:
            EnvironmentNotFound: there is no such environment.
        """
        return (yield from routes.attach(environment, self.id, weight, self._context))

    @call
    def detach(self, environment: EnvironmentRef) -> Flow[Shape]:
        """Let it judge an environment no more.

        Raises:
            NotFoundError: it does not.
        """
        return (yield from routes.detach(environment, self.id, self._context))
