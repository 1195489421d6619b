"""The command tree of `rleaas`."""

from __future__ import annotations

import typer

from rleaas.cli.commands import (
    about,
    audit,
    environments,
    evaluations,
    keys,
    login,
    mcp,
    quickstart,
    serve,
    training,
)

app = typer.Typer(
    name="rleaas",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="RL environments as a service: register, train, evaluate, and step the same environment "
    "anywhere.",
    epilog="Exit codes: 1 failure, 2 usage, 3 not found, 4 access denied, 5 server unreachable, "
    "130 interrupted.",
)


@app.callback()
def _root(
    debug: bool = typer.Option(False, "--debug", help="Show the Python traceback of a failure."),
) -> None:
    """Options of every command; `main` reads --debug itself, before anything can fail."""


app.command("quickstart")(quickstart.quickstart)
app.command("serve")(serve.serve)
app.add_typer(environments.app, name="env")
app.add_typer(training.app, name="train")
app.add_typer(evaluations.app, name="eval")
app.add_typer(audit.app, name="audit")
app.add_typer(keys.app, name="keys")
app.add_typer(login.app, name="profile")
app.command("login")(login.login)
app.command("whoami")(login.whoami)
app.command("mcp")(mcp.mcp)
app.command("ping")(about.ping)
app.command("version")(about.version)
