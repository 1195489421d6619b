"""The `rleaas` command."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from rlcore import MissingDependencyError

from rleaas.cli.failures import FAILURE, INTERRUPTED, exit_code_of, is_of_output, say_failure


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; no failure shows a traceback, except to --debug."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(given)
        sys.stdout.flush()
    except BrokenPipeError:
        _give_output_up()  # the reader of a pipe has gone
        return FAILURE
    except (Exception, KeyboardInterrupt) as error:
        if given[:1] == ["--debug"]:
            traceback.print_exc()
        if is_of_output(error):
            _give_output_up()
        say_failure(error)
        return exit_code_of(error)
    return code


def _give_output_up() -> None:
    # Python must not complain when it flushes at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(arguments: list[str]) -> int:
    try:
        import typer

        from rleaas.cli.console import write_what_it_can
        from rleaas.cli.tree import app
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"the rleaas command needs {error.name!r}, which is not installed",
            hint="Install it: pip install 'rleaas[cli]'",
        ) from error
    write_what_it_can()
    try:
        result: object = app(args=arguments, prog_name="rleaas", standalone_mode=False)
    except typer.Abort as abort:
        raise KeyboardInterrupt from abort
    if result == INTERRUPTED:
        # Typer turns Ctrl-C into this exit code and says nothing.
        raise KeyboardInterrupt
    return result if isinstance(result, int) else 0


if __name__ == "__main__":
    sys.exit(main())
