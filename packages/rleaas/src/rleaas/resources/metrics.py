"""Figures of environments, and the tools that observe the platform."""

from __future__ import annotations

from collections.abc import Mapping

from rleaas._binding import D, Resource, call
from rleaas._flow import request as build
from rleaas._flow.decode import read, read_list
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow, Request
from rleaas.models import Kpis, Shape
from rleaas.resources.environment_routes import EnvironmentRef, reference


class MetricsClient(Resource[D]):
    """What the platform knows of how well things go."""

    @call
    def get_kpis(
        self, environment_name: EnvironmentRef | None = None, refresh: bool = False
    ) -> Flow[Kpis]:
        """Return the figures of an environment, or of all, over the rollouts that are stored.

        Raises:
            EnvironmentNotFound: there is no such environment.
        """
        name = None if environment_name is None else reference(environment_name)
        params = {"environment_name": name, "refresh": refresh or None}
        request = build.get("/kpis", params, kind="environment", ref=name)
        reply = yield from ask(request, self._context)
        return read(Kpis, request, reply)

    @call
    def get_kpi_history(
        self, environment_name: EnvironmentRef | None = None, limit: int = 50, offset: int = 0
    ) -> Flow[list[Kpis]]:
        """Return the figures of each evaluation, newest first; a limit of 0 is all."""
        name = None if environment_name is None else reference(environment_name)
        params = {"environment_name": name, "limit": limit, "offset": offset}
        request = build.get("/kpis/history", params, kind="environment", ref=name)
        reply = yield from ask(request, self._context)
        return read_list(Kpis, request, reply, "history")[0]

    @call
    def clear_kpi_history(self) -> Flow[Shape]:
        """Let the platform forget the history of all environments; rollouts stay."""
        request = Request(method="DELETE", path="/kpis/history")
        reply = yield from ask(request, self._context)
        return read(Shape, request, reply)

    @call
    def list_agent_tools(self) -> Flow[list[Shape]]:
        """Return the tools of the observability agent: name, description, parameters."""
        request = build.get("/api/agent/tools")
        reply = yield from ask(request, self._context)
        return read_list(Shape, request, reply, "tools")[0]

    @call
    def invoke_agent_tool(
        self, tool: str, params: Mapping[str, object] | None = None
    ) -> Flow[Shape]:
        """Let the observability agent use one of its tools, and return what it found.

        Raises:
            InvalidRequestError: there is no such tool, or it cannot use the parameters.
        """
        body = {"tool": tool, "params": dict(params or {})}
        request = build.post("/api/agent/invoke", body, key=self._context.new_key())
        reply = yield from ask(request, self._context)
        return read(Shape, request, reply)

    @call
    def agent_health(self) -> Flow[Shape]:
        """Return how the platform is doing."""
        request = build.get("/api/agent/health")
        reply = yield from ask(request, self._context)
        return read(Shape, request, reply)
