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
    workers: Annotated[
        int, typer.Option(min=1, help="How many jobs may run at the same time.")
    ] = 2,
    require_key: Annotated[
        bool,
        typer.Option(
            "--require-key", help="Let nobody in without a key; `rleaas keys bootstrap` makes one."
        ),
    ] = False,
    database_url: Annotated[
        str | None,
        typer.Option(
            "--database-url",
            metavar="URL",
            help="postgresql://USER@HOST/NAME instead of a SQLite file [RLEAAS_DATABASE_URL].",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="HOST[:PORT]",
            help="A host that the server may ask though it is not public; repeatable.",
        ),
    ] = None,
    allow_code: Annotated[
        bool,
        typer.Option(
            "--allow-code",
            help="Let every organisation register code (python://, gym://module:ID, unix://), "
            "which runs in the server's account; else only the operator's own, `default`, may "
            "[RLEAAS_ALLOW_CODE=1].",
        ),
    ] = False,
    idle: Annotated[
        float,
        typer.Option(
            min=0, metavar="MINUTES", help="Stop environments that nobody uses so long; 0 never."
        ),
    ] = 60.0,
    drain_timeout: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="How long requests that have begun may go on when it is told to stop.",
        ),
    ] = 10.0,
    log_format: Annotated[
        str | None,
        typer.Option(
            "--log-format",
            metavar="text|json",
            help="Write each request to standard error in this format [RLEAAS_LOG_FORMAT, else "
            "only warnings and errors, as text].",
        ),
    ] = None,
    allow_insecure: Annotated[
        bool,
        typer.Option(
            "--allow-insecure", help="Let other machines in even when no key is asked of them."
        ),
    ] = False,
) -> int:
    """Run the control plane here, until Ctrl-C or SIGTERM; its child processes end with it.

    Callers need a key with --require-key, and where RLEAAS_SERVER_API_KEY is set, which is then
    one that may do everything. Without either, whoever is at this machine may do everything.
    """
    from rleaas.server.run import serve as run_server

    return run_server(
        host=host,
        port=port,
        data_dir=data,
        require_key=require_key,
        database=database_url,
        max_workers=workers,
        allowed_hosts=allow_host or (),
        allow_code=allow_code,
        idle_minutes=idle,
        drain_seconds=drain_timeout,
        logs=log_format,
        allow_insecure=allow_insecure,
    )
