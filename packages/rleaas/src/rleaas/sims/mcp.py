"""The MCP face of a world: any agent that speaks the Model Context Protocol can play it.

The world's tools are the server's, with their JSON schemas. Beside them are `episode_begin`,
`episode_status` and `episode_end`. The task is the prompt `task` and the resource `world://task`;
the verdict is the resource `world://verdict`, once the episode is over. A call that the world
refuses is a tool error, which says why, and costs a step like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlcore import MissingDependencyError

from rleaas.sims.playing import WorldServer

if TYPE_CHECKING:
    from mcp.server import Server


def server_of(play: WorldServer) -> Server[Any]:
    """The server of the protocol, for any of its transports.

    Raises:
        MissingDependencyError: the extra `rleaas[mcp]` is not installed.
    """
    try:
        from rleaas.sims.protocol import make
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    return make(play)


async def serve_stdio(play: WorldServer) -> None:
    """Answer on standard input and output until the input ends.

    Raises:
        MissingDependencyError: the extra `rleaas[mcp]` is not installed.
    """
    server = server_of(play)
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def serve_http(play: WorldServer, port: int) -> None:
    """Answer at `http://127.0.0.1:PORT/mcp`, to this machine alone, until it is interrupted.

    Raises:
        MissingDependencyError: the extra `rleaas[mcp]` is not installed.
    """
    server = server_of(play)
    try:
        import uvicorn
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    uvicorn.run(
        server.streamable_http_app(), host="127.0.0.1", port=port, log_level="warning", ws="none"
    )


def _missing(error: ModuleNotFoundError) -> MissingDependencyError:
    return MissingDependencyError(
        f"the MCP face of a world needs {error.name!r}, which is not installed",
        hint="Install it: pip install 'rleaas[mcp,sims]'",
    )
