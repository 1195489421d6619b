"""`rleaas sim …`: the built-in worlds, on this machine and without a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from rleaas.cli.console import columns, print_json, print_records, stderr
from rleaas.cli.nouns import noun
from rleaas.cli.options import AsJson
from rleaas.cli.spec import objects_from, optional_object

app = noun("sim")

VerticalName = Annotated[
    str, typer.Option("--vertical", metavar="NAME", help="Such as FinSim or DevSim.")
]


@app.command("list", epilog="Example: `rleaas sim list`")
def list_worlds(as_json: AsJson = False) -> None:
    """List the built-in worlds."""
    from rleaas.sims import VERTICALS

    rows = [
        {
            "name": one.name,
            "summary": one.summary,
            "tools": len(one.tools),
            "scenarios": len(one.scenarios),
            "settings": [option.name for option in one.all_options],
        }
        for one in VERTICALS.values()
    ]
    _show(rows, as_json, ("name", "summary", "tools", "scenarios"))


@app.command("scenarios", epilog="Example: `rleaas sim scenarios --vertical DevSim --tier 3`")
def scenarios(
    vertical: VerticalName,
    tier: Annotated[int | None, typer.Option(min=1, max=4, help="Only this tier.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the scenarios of a world's library."""
    from rleaas.sims import vertical_of

    rows = [
        {
            "id": one.id,
            "tier": one.tier,
            "half": one.split,
            "title": one.title,
            "budget": one.max_steps,
            "tools": list(one.tools),
        }
        for one in vertical_of(vertical).scenarios
        if tier is None or one.tier == tier
    ]
    _show(rows, as_json, ("id", "tier", "half", "title", "budget"))


@app.command(
    "mcp",
    epilog="Examples: `rleaas sim mcp --vertical DevSim --scenario devsim_release_001 --seed 7` · "
    "`rleaas sim mcp --vertical FinSim --http 8765`",
)
def mcp(
    vertical: VerticalName,
    scenario: Annotated[
        str | None, typer.Option(metavar="ID", help="What the first episode plays [drawn].")
    ] = None,
    tier: Annotated[
        int | None, typer.Option(min=1, max=4, help="Of which tier it is drawn.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the first episode.")] = 0,
    config: Annotated[
        str | None, typer.Option(metavar="JSON", help="The world's configuration; @FILE reads it.")
    ] = None,
    tools: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A list of tools of your own, in JSON or YAML."),
    ] = None,
    http: Annotated[
        int | None,
        typer.Option(min=1, max=65_535, metavar="PORT", help="Serve on this port instead."),
    ] = None,
) -> None:
    """Let an agent that speaks MCP play a world, over standard input and output.

    The world's tools are the server's. The prompt `task` has the task and its budget, the tool
    `episode_end` ends the episode, and the resource `world://verdict` says how it went. With
    --http it is served at http://127.0.0.1:PORT/mcp, to this machine alone, and each session plays
    a world of its own.
    """
    import anyio

    from rleaas.sims import World, vertical_of
    from rleaas.sims.mcp import serve_http, serve_stdio
    from rleaas.sims.playing import WorldServer
    from rleaas.sims.user_tools import read_tools

    settings = optional_object("--config", config)
    added = read_tools([] if tools is None else objects_from(tools, "tools"))

    def begin() -> WorldServer:
        world = World(vertical_of(vertical), settings, tools=added)
        return WorldServer(world, seed=seed, scenario=scenario, tier=tier)

    play = begin()  # whatever is wrong with it is said now
    if http is None:
        anyio.run(serve_stdio, play)
        return
    name = vertical_of(vertical).name
    stderr().print(f"{name} is served at http://127.0.0.1:{http}/mcp")
    serve_http(begin, http)


def _show(rows: Sequence[Mapping[str, object]], as_json: bool, shown: tuple[str, ...]) -> None:
    if as_json:
        print_json(rows)
        return
    print_records(rows, columns(*shown), empty="None.")
