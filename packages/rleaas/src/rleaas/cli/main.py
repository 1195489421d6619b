"""The `rleaas` command."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rlcore import MissingDependencyError

from rleaas.cli.ending import ended
from rleaas.cli.failures import INTERRUPTED


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; no failure shows a traceback, except to --debug."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    return ended(lambda: _run(given), debug=given[:1] == ["--debug"])


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
