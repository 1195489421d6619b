"""The command tree of `rleaas`."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

import typer

from rleaas.cli.commands import about, environments, evaluations, quickstart, serve, training
from rleaas.cli.failures import FAILURE, INTERRUPTED, exit_code_of, say_failure

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
app.command("ping")(about.ping)
app.command("version")(about.version)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; no failure of ours shows a traceback."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        result: object = app(args=given, prog_name="rleaas", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of a pipe has gone; Python must not complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except typer.Abort:
        say_failure(KeyboardInterrupt())
        return INTERRUPTED
    except (Exception, KeyboardInterrupt) as error:
        if given[:1] == ["--debug"]:
            traceback.print_exc()
        say_failure(error)
        return exit_code_of(error)
    if result == INTERRUPTED:
        # Typer turns Ctrl-C into this exit code and says nothing.
        say_failure(KeyboardInterrupt())
    return result if isinstance(result, int) else 0


if __name__ == "__main__":
    sys.exit(main())
