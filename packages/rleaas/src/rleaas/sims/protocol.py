"""A world's server of the Model Context Protocol, over the official package."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, Final, cast

import anyio
from mcp import types
from mcp.server import Server
from mcp.server.context import ServerRequestContext

from rleaas.sims.playing import END, TASK_URI, VERDICT_URI, WorldServer
from rleaas.sims.state import Json

_JSON: Final = "application/json"


# The package leaves the types of its contexts open.
Context = ServerRequestContext[Any, Any]
_WORLD: Final = "rleaas-world"


def make(play: WorldServer) -> Server[Any]:
    """The server of one world, for a transport with one client."""
    return _server(lambda _: play)


def make_for_sessions(begin: Callable[[], WorldServer]) -> Server[Any]:
    """The server of one world for each session, which ends with it.

    A request without a session has no world: what it did would be another one's business.
    """

    def of_session(context: Context) -> WorldServer:
        # The package keeps what belongs to a session here, and offers no other way to it.
        connection = context.session._connection  # pyright: ignore[reportPrivateUsage]
        if connection.session_id is None:
            raise ValueError("a world is played in a session: initialize one first")
        play = connection.state.get(_WORLD)
        if play is None:
            # Without a pause in between: two first calls of a session meet in one world.
            play = connection.state[_WORLD] = begin()
        return cast("WorldServer", play)

    return _server(of_session)


def _server(play_of: Callable[[Context], WorldServer]) -> Server[Any]:
    answers = _Answers(play_of)
    return Server(
        "rleaas-sim",
        version=version("rleaas"),
        instructions=f"A simulated task. Read the prompt 'task', call tools; {END} ends it.",
        on_list_tools=answers.list_tools,
        on_call_tool=answers.call_tool,
        on_list_prompts=answers.list_prompts,
        on_get_prompt=answers.get_prompt,
        on_list_resources=answers.list_resources,
        on_read_resource=answers.read_resource,
    )


class _Answers:
    def __init__(self, play_of: Callable[[Context], WorldServer]) -> None:
        self._play_of = play_of

    async def list_tools(self, context: Context, params: object) -> types.ListToolsResult:
        """Every tool that can be called now."""
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool["name"],
                    description=tool["description"],
                    input_schema=tool["parameters"],
                    annotations=types.ToolAnnotations(read_only_hint=tool["reads"]),
                )
                for tool in await _aside(self._play_of(context).tools)
            ]
        )

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Call one; what the world refuses is a tool error."""
        play = self._play_of(context)
        said = await _aside(lambda: play.call(params.name, params.arguments or {}))
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=json.dumps(said))],
            structured_content=said,
            is_error=not said["ok"],
        )

    async def list_prompts(self, context: object, params: object) -> types.ListPromptsResult:
        """The one prompt."""
        about = "The task of this episode, with the calls that it may take."
        return types.ListPromptsResult(prompts=[types.Prompt(name="task", description=about)])

    async def get_prompt(
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        """The task in words."""
        if params.name != "task":
            raise ValueError(f"there is no prompt {params.name!r}: the one here is 'task'")
        told = await _aside(self._play_of(context).task)
        text = f"{told['prompt']}\nYou may make {told['budget_left']} tool calls."
        content = types.TextContent(type="text", text=text)
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])

    async def list_resources(self, context: object, params: object) -> types.ListResourcesResult:
        """The task, and the verdict."""
        described = {TASK_URI: "the task and its budget", VERDICT_URI: "the verdict, at the end"}
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    name=uri.rpartition("/")[2], uri=uri, description=about, mime_type=_JSON
                )
                for uri, about in described.items()
            ]
        )

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """One of them, as JSON."""
        uri = str(params.uri)
        play = self._play_of(context)
        known = {TASK_URI: play.task, VERDICT_URI: play.verdict}
        if uri not in known:
            raise ValueError(f"there is no resource {uri!r}: there are {', '.join(known)}")
        text = json.dumps(await _aside(known[uri]))
        contents = types.TextResourceContents(uri=uri, mime_type=_JSON, text=text)
        return types.ReadResourceResult(contents=[contents])


async def _aside(work: Callable[[], Json]) -> Json:
    # Tools may ask endpoints, and take their time.
    return await anyio.to_thread.run_sync(work)
