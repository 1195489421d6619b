"""The options and arguments that commands share."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Annotated

import typer

from rleaas.cli.plain import visible

if TYPE_CHECKING:
    from rleaas import Client

SERVER = "Server"

BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        metavar="URL",
        help="The server's address [RLEAAS_BASE_URL, else the profile's, else "
        "http://localhost:8000].",
        rich_help_panel=SERVER,
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--api-key",
        metavar="KEY",
        help="The API key; RLEAAS_API_KEY keeps it out of the process list.",
        rich_help_panel=SERVER,
    ),
]
ProfileName = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="A profile of ~/.config/rleaas/config.toml [RLEAAS_PROFILE].",
        rich_help_panel=SERVER,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Limit = Annotated[int | None, typer.Option(min=1, help="At most so many.")]
Offset = Annotated[int, typer.Option(min=0, help="Leave out so many at the beginning.")]


def connect(
    base_url: str | None,
    api_key: str | None,
    profile: str | None,
    *,
    timeout: float | None = None,
    retries: int | None = None,
    quiet: bool = False,
) -> Client:
    """Return a client; argument, environment variable, profile and default count in that order.

    What it warns of is a line on standard error, unless it is to be `quiet`.
    """
    # The client pulls in httpx and pydantic, which --help has no use for.
    from rleaas import Client

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        client = Client(
            base_url=base_url, api_key=api_key, profile=profile, timeout=timeout, retries=retries
        )
    for one in [] if quiet else warned:
        print(f"warning: {visible(str(one.message))}", file=sys.stderr)
    return client
