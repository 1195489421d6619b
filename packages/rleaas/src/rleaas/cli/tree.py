"""The command tree of `rleaas`."""

from __future__ import annotations

import typer

from rleaas.cli.command import command
from rleaas.cli.commands import about, events, login, mcp, quickstart, serve, train
from rleaas.cli.nouns import MARKUP, Noun, Panels

BEGIN = "Begin"
BUILD = "Environments and what is in them"
RUN = "Train and evaluate"
LOOK = "Look at what happens"
OPERATE = "Keys, people and operations"


class Root(Panels):
    """All of it; a noun's commands are in `commands/`."""

    panels = (BEGIN, BUILD, RUN, LOOK, OPERATE)
    nouns = (
        Noun("profile", "Named settings of servers and keys.", BEGIN, ("login",)),
        Noun(
            "env",
            "Register environments and look after them.",
            BUILD,
            ("environments", "environment_parts"),
        ),
        Noun("tool", "Describe the tools that agents call.", BUILD, ("tools",)),
        Noun("sim", "Look at the built-in worlds, and let agents play them.", BUILD, ("sims",)),
        Noun("scenario", "Write the tasks of environments.", BUILD, ("scenarios",)),
        Noun("suite", "Put scenarios together, in an order.", BUILD, ("suites",)),
        Noun("verifier", "Make verifiers and attach them.", BUILD, ("verifiers",)),
        Noun("data", "Upload files for environments.", BUILD, ("data_assets",)),
        Noun(
            "deploy",
            "Record where environments run, and write the manifests that put them there.",
            BUILD,
            ("deployments",),
        ),
        Noun("agent", "Register agents and put them to use.", RUN, ("agents",)),
        Noun("job", "Start training jobs and follow them.", RUN, ("jobs",)),
        Noun("config", "Check a config.json, and print its schema.", RUN, ("config",)),
        Noun("checkpoint", "Look at and download checkpoints.", RUN, ("checkpoints",)),
        Noun(
            "eval",
            "Evaluate checkpoints, read and compare the reports.",
            RUN,
            ("evaluations", "eval_judging"),
        ),
        Noun("rollout", "Look at episodes that are stored.", RUN, ("rollouts",)),
        Noun("metrics", "Figures of environments and of the platform.", LOOK, ("metrics",)),
        Noun("audit", "Query, export and verify the audit records.", LOOK, ("audit",)),
        Noun("webhook", "Let the platform tell URLs what happens.", LOOK, ("webhooks",)),
        Noun("keys", "Make, list and revoke API keys.", OPERATE, ("keys",)),
        Noun("db", "Upgrade, back up and restore what a server keeps.", OPERATE, ("db",)),
        Noun("org", "Organisations, their members and limits.", OPERATE, ("organisations",)),
        Noun(
            "governance",
            "Say how long data is kept, what is masked in it, and when to raise an alert.",
            OPERATE,
            ("governance",),
        ),
    )


app = typer.Typer(
    name="rleaas",
    cls=Root,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=MARKUP,
    help="RL environments as a service: register, train, evaluate, and step the same environment "
    "anywhere.",
    epilog="Exit codes: 0 done, 1 failure, 2 usage, 3 not found, 4 access denied, 5 server "
    "unreachable, 6 cancelled, 7 waiting for a verdict, 8 job failed, 9 timeout, "
    "10 config file wrong, 130 interrupted. "
    "Example: `rleaas env list --json`",
)


@app.callback()
def _root(
    debug: bool = typer.Option(False, "--debug", help="Show the Python traceback of a failure."),
    version: bool = typer.Option(
        False, "--version", is_eager=True, callback=about.say_version, help="Print the version."
    ),
) -> None:
    """Options of every command; `main` reads --debug itself, before anything can fail."""


app.command(
    "quickstart", rich_help_panel=BEGIN, epilog="Example: `rleaas quickstart --episodes 300`"
)(quickstart.quickstart)
app.command("serve", rich_help_panel=BEGIN, epilog="Example: `rleaas serve --port 8000`")(
    serve.serve
)
app.command(
    "login", rich_help_panel=BEGIN, epilog="Example: `rleaas login --base-url https://rl.example`"
)(login.login)
app.command(
    "train",
    rich_help_panel=RUN,
    context_settings=train.AS_WRITTEN,
    epilog="Examples: `rleaas train start --training 3,4,5` · `rleaas train wait --job-id train_1`",
)(train.train)
command(app, "whoami", "whoami --json", panel=BEGIN)(login.whoami)
command(app, "ping", "ping --base-url http://localhost:8000", panel=BEGIN)(about.ping)
app.command("version", rich_help_panel=BEGIN, epilog="Example: `rleaas version --json`")(
    about.version
)
command(app, "events", "events --env Bank --json", panel=LOOK)(events.events)
app.command("mcp", rich_help_panel=LOOK, epilog="Example: `rleaas mcp --profile work`")(mcp.mcp)
