"""A verifier, and what can be done with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rleaas._binding import D, call
from rleaas._flow.wire import Flow
from rleaas.models import FailurePolicy, Shape, Verifier, VerifierResult, VerifierVersion
from rleaas.resources import verifier_routes as routes
from rleaas.resources.environment_routes import EnvironmentRef
from rleaas.resources.handle import Handle


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
        """`rule_based`, `trajectory_based`, `llm_judge` or `composite`."""
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

        Raises:
            UnsupportedRequestError: the server has no engine that judges.
        """
        return (yield from routes.test(self.id, state, trajectory, self._context))

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
