"""How a program ends: its exit code, with whatever failed said on standard error."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable

from rleaas.cli.failures import FAILURE, exit_code_of, is_of_output, say_failure


def ended(run: Callable[[], int], *, debug: bool = False) -> int:
    """Run a program and return its exit code; no failure shows a traceback, except to `debug`."""
    try:
        code = run()
        sys.stdout.flush()
    except BrokenPipeError:
        _give_output_up()  # the reader of a pipe has gone
        return FAILURE
    except (Exception, KeyboardInterrupt) as error:
        if debug:
            traceback.print_exc()
        if is_of_output(error):
            _give_output_up()
        say_failure(error)
        return exit_code_of(error)
    return code


def _give_output_up() -> None:
    # Python must not complain when it flushes at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
