"""Scenarios: create, find, change, take from the library."""

from __future__ import annotations

from builtins import list as list_
from collections.abc import Mapping, Sequence

from rleaas._binding import D, Resource, call, stream
from rleaas._flow import request as build
from rleaas._flow.decode import read, read_list
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow, Request, Stream
from rleaas.models import Scenario, Shape
from rleaas.resources.environment_routes import EnvironmentRef
from rleaas.resources.pages import collect, iterate
from rleaas.resources.references import (
    IdRef,
    environment_of,
    given,
    id_of,
    plain,
    require_tier,
    texts_of,
)

KIND = "scenario"


class ScenarioClient(Resource[D]):
    """The scenarios of the platform, and its library of them."""

    @call
    def library(
        self,
        vertical: str | None = None,
        tier: Sequence[int] | None = None,
        domain: str | None = None,
        tags: Sequence[str] | None = None,
        limit: int = 20,
    ) -> Flow[list_[Scenario]]:
        """Return scenarios that the platform ships, at most `limit`.

        Args:
            vertical: only those of this vertical, such as `FinSim`.
            tier: only those of these tiers.
            domain: only those of this domain, such as `wire_transfer`.
            tags: only those with all of these tags.
            limit: how many at most.
        """
        tiers = None if tier is None else ",".join(str(require_tier(one)) for one in tier)
        request = build.get(
            "/api/scenarios",
            {
                "limit": limit,
                "category": vertical,
                "tier": tiers,
                "domain": domain,
                "tags": None if tags is None else ",".join(texts_of(tags, "tags")),
            },
        )
        reply = yield from ask(request, self._context)
        found, _ = read_list(Scenario, request, reply, "scenarios")
        return found

    @call
    def from_library(
        self,
        library_id: IdRef,
        env_id: EnvironmentRef | None = None,
        env_name: EnvironmentRef | None = None,
    ) -> Flow[Scenario]:
        """Copy a scenario of the library into an environment and return the copy.

        Args:
            library_id: its id there.
            env_id: the environment, by name, id or handle.
            env_name: the same.

        Raises:
            ScenarioNotFound: the library has none with this id.
            EnvironmentNotFound: there is no such environment.
        """
        text = id_of(library_id, KIND)
        body = {
            "library_id": text,
            "environment": environment_of(env_name, env_id) or "",
            "source": "library",
        }
        return (yield from self._post(body, text))

    @call
    def create(
        self,
        name: str,
        env_id: EnvironmentRef | None = None,
        env_name: EnvironmentRef | None = None,
        tier: int = 1,
        task_prompt: str | None = None,
        available_tools: Sequence[str] | None = None,
        max_steps: int = 20,
        context_injection: Mapping[str, object] | None = None,
        success_criteria_ref: IdRef | None = None,
        tags: Sequence[str] | None = None,
        scenario_id: str | None = None,
    ) -> Flow[Scenario]:
        """Add a scenario, or change the one with this id; return it.

        Args:
            name: what it is called.
            env_id: its environment, by name, id or handle.
            env_name: the same.
            tier: 1 (one step) to 4 (systemic stress).
            task_prompt: what the agent is asked to do.
            available_tools: the tools it may use; None: all of its environment, an empty list: no
                tool.
            max_steps: how many calls of tools it may take.
            context_injection: what the agent is shown at the start.
            success_criteria_ref: the verifier that decides, by id or handle.
            tags: for finding it.
            scenario_id: an id of your own.

        Raises:
            ConfigurationError: the tier is none; nothing was sent.
            EnvironmentNotFound: there is no such environment.
        """
        place = environment_of(env_name, env_id)
        body = {
            "id": scenario_id or f"scen_{self._context.new_key()[:16]}",
            "environment": place or "",
            **scenario_body(
                name,
                tier,
                task_prompt,
                available_tools,
                max_steps,
                context_injection,
                success_criteria_ref,
                tags,
            ),
        }
        return (yield from self._post(body, place))

    @call
    def update(
        self, /, scenario_id: IdRef, success_criteria_ref: IdRef | None = None, **fields: object
    ) -> Flow[Scenario]:
        """Change the fields that are given, and only those; return the scenario.

        Empty texts, lists and mappings are sent as such.

        Raises:
            ScenarioNotFound: there is none.
            InvalidRequestError: the platform refuses a field.
        """
        text = id_of(scenario_id, KIND)
        body = {**fields, **_criteria(success_criteria_ref)}
        request = Request(method="PATCH", path=_path(text), json=plain(body), kind=KIND, ref=text)
        reply = yield from ask(request, self._context)
        return read(Scenario, request, reply)

    @call
    def get(self, scenario_id: IdRef) -> Flow[Scenario]:
        """Return one scenario.

        Raises:
            ScenarioNotFound: there is none; it is also a KeyError.
        """
        text = id_of(scenario_id, KIND)
        request = build.get(_path(text), kind=KIND, ref=text)
        reply = yield from ask(request, self._context)
        return read(Scenario, request, reply)

    @call
    def list(
        self, env_name: EnvironmentRef | None = None, category: str | None = None
    ) -> Flow[list_[Scenario]]:
        """Return scenarios, oldest first.

        Args:
            env_name: only those of this environment, by name, id or handle.
            category: only those of environments of this vertical.

        Raises:
            EnvironmentNotFound: there is no such environment.
        """
        return (
            yield from collect(
                Scenario,
                "/api/scenarios",
                _params(env_name, category),
                "scenarios",
                self._context,
            )
        )

    @stream
    def iterate(
        self, env_name: EnvironmentRef | None = None, category: str | None = None
    ) -> Stream[Scenario]:
        """Yield what `list` would return, asking for it as it is read."""
        yield from iterate(
            Scenario, "/api/scenarios", _params(env_name, category), "scenarios", self._context
        )

    @call
    def delete(self, scenario_id: IdRef) -> Flow[Shape]:
        """Delete a scenario, and take it out of the suites that list it.

        Raises:
            ScenarioNotFound: there is none.
        """
        text = id_of(scenario_id, KIND)
        request = Request(method="DELETE", path=_path(text), kind=KIND, ref=text)
        reply = yield from ask(request, self._context)
        return read(Shape, request, reply)

    def _post(self, body: Mapping[str, object], ref: str | None) -> Flow[Scenario]:
        request = build.post(
            "/api/scenarios", body, key=self._context.new_key(), kind="environment", ref=ref
        )
        reply = yield from ask(request, self._context)
        return read(Scenario, request, reply)


def scenario_body(
    name: str,
    tier: int,
    task_prompt: str | None,
    available_tools: Sequence[str] | None,
    max_steps: int,
    context_injection: Mapping[str, object] | None,
    success_criteria_ref: IdRef | None,
    tags: Sequence[str] | None,
) -> dict[str, object]:
    """Return what is sent of a new scenario."""
    return {
        "name": name,
        "tier": require_tier(tier),
        "max_steps": max_steps,
        **given(
            task_prompt=task_prompt,
            available_tools=None if available_tools is None else texts_of(available_tools, "tools"),
            context_injection=context_injection,
            tags=None if tags is None else texts_of(tags, "tags"),
        ),
        **_criteria(success_criteria_ref),
    }


def _criteria(ref: IdRef | None) -> dict[str, object]:
    if ref is None:
        return {}
    # An empty text takes it away.
    return {"success_criteria_ref": ref if ref == "" else id_of(ref, "verifier")}


def _params(env_name: EnvironmentRef | None, category: str | None) -> dict[str, str | int | None]:
    # Without the type, the limit of a page would ask for the library.
    return {"type": "scenario", "product": environment_of(env_name), "category": category}


def _path(scenario_id: str) -> str:
    return build.path("/api/scenarios/{}", scenario_id, what="scenario id")
