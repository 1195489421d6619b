"""The platform's observability tools as a server of the Model Context Protocol."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, cast

from rlcore import Error, MissingDependencyError, UnexpectedReply

if TYPE_CHECKING:
    from mcp.server import Server

    from rleaas import AsyncClient

Tools = list[dict[str, Any]]


async def serve(client: AsyncClient) -> None:
    """Answer on standard input and output until the input ends.

    Raises:
        MissingDependencyError: the extra `rleaas[mcp]` is not installed.
    """
    server = tools_server(client)
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def tools_server(client: AsyncClient) -> Server[Any]:
    """Return the server; each tool is one of the platform's, asked with the client's key.

    Raises:
        MissingDependencyError: the extra `rleaas[mcp]` is not installed.
    """
    try:
        from mcp import types
        from mcp.server import Server
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"`rleaas mcp` needs {error.name!r}, which is not installed",
            hint="Install it: pip install 'rleaas[mcp]'",
        ) from error

    async def list_tools(context: object, params: object) -> types.ListToolsResult:
        found = await _tools(client)
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool["name"],
                    description=tool["description"],
                    input_schema=tool["parameters"],
                    annotations=types.ToolAnnotations(read_only_hint=True),
                )
                for tool in found
            ]
        )

    async def call_tool(
        context: object, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        body = {"tool": params.name, "params": params.arguments or {}}
        try:
            reply = await client.post("/api/agent/invoke", json=body)
        except Error as error:
            text = types.TextContent(type="text", text=str(error))
            return types.CallToolResult(content=[text], is_error=True)
        result = cast("dict[str, object]", reply)["result"]
        text = types.TextContent(type="text", text=json.dumps(result, ensure_ascii=False))
        return types.CallToolResult(content=[text], structured_content=result)

    return Server(
        "rleaas",
        version=version("rleaas"),
        instructions=f"Reads environments, jobs, figures and health of {client.base_url}.",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _tools(client: AsyncClient) -> Tools:
    reply = await client.get("/api/agent/tools")
    fields = cast("dict[str, object]", reply) if isinstance(reply, dict) else {}
    if not isinstance(fields.get("tools"), list):
        raise UnexpectedReply("the platform did not say which tools it has")
    return cast("Tools", fields["tools"])
