"""`rleaas serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def serve(
    host: Annotated[
        str, typer.Option(help="The interface to listen on; loopback only, unless you say so.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="DIR",
            file_okay=False,
            help="Where records and checkpoints are kept [the user's data directory].",
        ),
    ] = None,
) -> int:
    """Run the control plane here, until Ctrl-C or SIGTERM; its child processes end with it."""
    from rleaas.server.run import serve as run_server

    return run_server(host=host, port=port, data_dir=data)
