"""Scenario suites: create, find, change."""

from __future__ import annotations

from builtins import list as list_
from collections.abc import Sequence
from typing import get_args

from rleaas._binding import D, Resource, call, stream
from rleaas._flow import request as build
from rleaas._flow.decode import read
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow, Request, Stream
from rleaas.models import ScenarioSuite, Shape, SuitePurpose
from rleaas.resources.environment_routes import EnvironmentRef
from rleaas.resources.pages import collect, iterate
from rleaas.resources.references import IdRef, environment_of, given, id_of, ids_of, require_one_of

KIND = "suite"
PURPOSES: tuple[str, ...] = get_args(SuitePurpose)


class ScenarioSuiteClient(Resource[D]):
    """Scenarios in their order, for training or held out for evaluation."""

    @call
    def create(
        self,
        name: str,
        scenario_ids: Sequence[IdRef],
        env_id: EnvironmentRef | None = None,
        env_name: EnvironmentRef | None = None,
        purpose: str = "training",
        suite_id: str | None = None,
    ) -> Flow[ScenarioSuite]:
        """Add a suite, or change the one with this id; return it.

        Args:
            name: what it is called.
            scenario_ids: its scenarios in their order, by id or as they are.
            env_id: its environment, by name, id or handle.
            env_name: the same.
            purpose: `training` or `evaluation`.
            suite_id: an id of your own.

        Raises:
            ConfigurationError: the purpose is none; nothing was sent.
            ScenarioNotFound: a scenario that it lists does not exist.
        """
        body = {
            "id": suite_id or f"suite_{self._context.new_key()[:16]}",
            "name": name,
            "scenario_ids": ids_of(scenario_ids, "scenario"),
            "purpose": require_one_of(purpose, PURPOSES, "a purpose of a suite"),
            "environment": environment_of(env_name, env_id) or "",
        }
        request = build.post("/api/scenario-suites", body, key=self._context.new_key())
        reply = yield from ask(request, self._context)
        return read(ScenarioSuite, request, reply)

    @call
    def get(self, suite_id: IdRef) -> Flow[ScenarioSuite]:
        """Return one suite.

        Raises:
            SuiteNotFound: there is none; it is also a KeyError.
        """
        text = id_of(suite_id, KIND)
        request = build.get(_path(text), kind=KIND, ref=text)
        reply = yield from ask(request, self._context)
        return read(ScenarioSuite, request, reply)

    @call
    def list(
        self, env_name: EnvironmentRef | None = None, purpose: str | None = None
    ) -> Flow[list_[ScenarioSuite]]:
        """Return suites, oldest first.

        Args:
            env_name: only those of this environment, by name, id or handle.
            purpose: only those for `training`, or for `evaluation`.
        """
        return (
            yield from collect(
                ScenarioSuite,
                "/api/scenario-suites",
                _params(env_name, purpose),
                "suites",
                self._context,
            )
        )

    @stream
    def iterate(
        self, env_name: EnvironmentRef | None = None, purpose: str | None = None
    ) -> Stream[ScenarioSuite]:
        """Yield what `list` would return, asking for it as it is read."""
        yield from iterate(
            ScenarioSuite,
            "/api/scenario-suites",
            _params(env_name, purpose),
            "suites",
            self._context,
        )

    @call
    def update(
        self,
        suite_id: IdRef,
        *,
        name: str | None = None,
        scenario_ids: Sequence[IdRef] | None = None,
        purpose: str | None = None,
        environment: EnvironmentRef | None = None,
    ) -> Flow[ScenarioSuite]:
        """Change what is given, and only that; a suite that differs has the next version.

        Raises:
            SuiteNotFound: there is none.
            ScenarioNotFound: a scenario that it is to list does not exist.
        """
        text = id_of(suite_id, KIND)
        body = given(
            name=name,
            scenario_ids=None if scenario_ids is None else ids_of(scenario_ids, "scenario"),
            purpose=None
            if purpose is None
            else require_one_of(purpose, PURPOSES, "a purpose of a suite"),
            environment="" if environment == "" else environment_of(environment),
        )
        request = Request(method="PATCH", path=_path(text), json=body, kind=KIND, ref=text)
        reply = yield from ask(request, self._context)
        return read(ScenarioSuite, request, reply)

    @call
    def delete(self, suite_id: IdRef) -> Flow[Shape]:
        """Delete a suite; its scenarios stay.

        Raises:
            SuiteNotFound: there is none.
        """
        text = id_of(suite_id, KIND)
        request = Request(method="DELETE", path=_path(text), kind=KIND, ref=text)
        reply = yield from ask(request, self._context)
        return read(Shape, request, reply)


def _params(env_name: EnvironmentRef | None, purpose: str | None) -> dict[str, str | int | None]:
    if purpose is not None:
        require_one_of(purpose, PURPOSES, "a purpose of a suite")
    return {"environment": environment_of(env_name), "purpose": purpose}


def _path(suite_id: str) -> str:
    return build.path("/api/scenario-suites/{}", suite_id, what="suite id")
