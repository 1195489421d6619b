"""The MCP face of a world: any agent that speaks the Model Context Protocol can play it.

The world's tools are the server's, with their JSON schemas. Beside them are `episode_begin`,
`episode_status` and `episode_end`. The task is the prompt `task` and the resource `world://task`;
the verdict is the resource `world://verdict`, once the episode is over. A call that the world
refuses is a tool error, which says why, and costs a step like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from rlcore import MissingDependencyError

from rleaas.sims.playing import WorldServer

if TYPE_CHECKING:
    from mcp.server import Server

MOST_SESSIONS: Final = 64
IDLE_SECONDS: Final = 1_800.0


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


def serve_http(begin: Callable[[], WorldServer], port: int) -> None:
    """Answer at `http://127.0.0.1:PORT/mcp`, to this machine alone, until it is interrupted.

    Each session plays a world of its own, which ends with it: when the client closes it, or has
    asked nothing for `IDLE_SECONDS`. Beyond `MOST_SESSIONS` no more are opened (503). Clients that
    speak the protocol without sessions are told to open one.

    Raises:
        MissingDependencyError: the extra `rleaas[mcp]` is not installed.
    """
    app = http_app(begin)
    try:
        import uvicorn
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", ws="none")


def http_app(
    begin: Callable[[], WorldServer], *, most: int = MOST_SESSIONS, idle: float = IDLE_SECONDS
) -> Any:
    """The ASGI application of `serve_http`.

    Raises:
        MissingDependencyError: the extra `rleaas[mcp]` is not installed.
    """
    try:
        from rleaas.sims.protocol import make_for_sessions
        from rleaas.sims.sessions_only import SessionsOnly
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    server = make_for_sessions(begin)
    return SessionsOnly(server.streamable_http_app(max_sessions=most, session_idle_timeout=idle))


def _missing(error: ModuleNotFoundError) -> MissingDependencyError:
    return MissingDependencyError(
        f"the MCP face of a world needs {error.name!r}, which is not installed",
        hint="Install it: pip install 'rleaas[mcp,sims]'",
    )
