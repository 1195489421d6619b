"""`python -m rlmesh._cli.serve_env`: serve one environment for the program that started this."""

from __future__ import annotations

import argparse
import hashlib
import logging
import os
import re
import stat
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rlcore import BindError, Error
from rlcore.command_line import Misuse, Parser
from rlcore.environ import variable

from rlmesh._serving import import_packages
from rlmesh.serve import FAILED, INTERRUPTED
from rlmesh.serve import main as serve
from rlmesh.server.sources import GYM, PYTHON, look_here

PROGRAM: Final = "python -m rlmesh._cli.serve_env"
ANYWHERE: Final = "tcp://127.0.0.1:0"
PRIVATE: Final = 0o700
# A socket's path may hold a hundred bytes or so; the names of sources may be longer.
NAME_BYTES: Final = 24


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or Ctrl-C and return the exit code.

    0 after either, 1 when it cannot serve, 2 when the command line is wrong. With `--ready-fd`, the
    address is written there and the descriptor is closed once clients can dial.
    """
    parser = _parser()
    options = parser.parse_args(argv)
    look_here()
    if options.verbose:
        logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
    try:
        import_packages(options.package)
        code = serve(_arguments(options), prog=PROGRAM)
    except Misuse as error:
        parser.error(str(error))
    except Error as error:
        sys.stderr.write(f"error: {' '.join(str(error).split())}\n")
        return FAILED
    return 0 if code == INTERRUPTED else code


def socket_path(source: str) -> Path:
    """Return where a source's socket is by default: a file in a folder of this user's own.

    Raises:
        BindError: the folder belongs to somebody else, or is open to others.
    """
    home = variable("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    folder = Path(home) / f"rlmesh-{os.getuid()}"
    folder.mkdir(mode=PRIVATE, exist_ok=True)
    found = folder.lstat()
    private = stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) == PRIVATE
    if not private or found.st_uid != os.getuid():
        raise BindError(
            f"{folder} is not a folder of this user's alone", hint="Remove it, or give --address."
        )
    word = re.sub(r"[^A-Za-z0-9]+", "-", source).strip("-")[:NAME_BYTES]
    digest = hashlib.sha256(source.encode()).hexdigest()[:8]
    return folder / f"{word}-{digest}.sock"


def _arguments(options: argparse.Namespace) -> list[str]:
    source = f"{GYM}{options.env}" if options.env else f"{PYTHON}{options.entrypoint}"
    address: str = options.address or ANYWHERE
    if options.transport == "unix":
        named = options.address or str(socket_path(options.env or options.entrypoint))
        address = named if "://" in named else f"unix://{Path(named).absolute()}"
    if options.transport == "tcp" and address.startswith("unix:"):
        raise Misuse("--transport tcp is given beside a path", hint="Leave one of them out.")
    if options.transport == "unix" and not address.startswith("unix:"):
        raise Misuse(f"--transport unix is given beside {address}", hint="Leave one of them out.")
    found = [source, "--address", address]
    for name in ("num_envs", "vectorization_mode", "kwargs_json", "ready_fd", "workflow_edition"):
        value = getattr(options, name)
        if value is not None:
            found += [f"--{name.replace('_', '-')}", str(value)]
    return found


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog=PROGRAM, description="Serve one environment for another program.")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--env", metavar="ID", help="a gymnasium id")
    source.add_argument("--entrypoint", metavar="MODULE:ATTR", help="a class, factory or function")
    parser.add_argument("--transport", choices=("tcp", "unix"), help="what to serve at (tcp)")
    parser.add_argument("--address", help=f"where ({ANYWHERE}, or a file in a private folder)")
    parser.add_argument("--num-envs", type=int, help="how many lanes each client gets (1)")
    parser.add_argument("--vectorization-mode", choices=("sync", "async"), help="what steps them")
    parser.add_argument("--package", action="append", default=[], help="import it first")
    parser.add_argument("--kwargs-json", help="a JSON object that each environment is made with")
    parser.add_argument("--ready-fd", type=int, help="a descriptor that gets the address")
    parser.add_argument("--workflow-edition", help="the edition the environment was written for")
    parser.add_argument("--verbose", action="store_true", help="log what happens")
    return parser


if __name__ == "__main__":
    sys.exit(main())
