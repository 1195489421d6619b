"""The observability agent: its tools, a call of one, and how things are."""

from __future__ import annotations

from builtins import list as list_
from collections.abc import Mapping

from rleaas._binding import D, Resource, call
from rleaas._flow import request as build
from rleaas._flow.decode import read, read_list
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow
from rleaas.models import Shape


class ObservabilityClient(Resource[D]):
    """Questions that only read; `rleaas mcp` gives the same ones to agents."""

    @call
    def list_agent_tools(self) -> Flow[list_[Shape]]:
        """Return the tools: each has `name`, `description` and the schema of its `parameters`."""
        request = build.get("/api/agent/tools")
        reply = yield from ask(request, self._context)
        found, _ = read_list(Shape, request, reply, "tools")
        return found

    @call
    def invoke_agent_tool(
        self, tool: str, params: Mapping[str, object] | None = None
    ) -> Flow[Shape]:
        """Ask a tool; its answer is in `result`.

        Raises:
            InvalidRequestError: there is no such tool, or it does not take these parameters.
            EnvironmentNotFound: the parameters name an environment that does not exist.
        """
        body = {"tool": tool, "params": dict(params or {})}
        request = build.post("/api/agent/invoke", body, key=self._context.new_key())
        return read(Shape, request, (yield from ask(request, self._context)))

    @call
    def agent_health(self) -> Flow[Shape]:
        """Return `status`, `ok` or `degraded`, with counts and warnings."""
        request = build.get("/api/agent/health")
        return read(Shape, request, (yield from ask(request, self._context)))
