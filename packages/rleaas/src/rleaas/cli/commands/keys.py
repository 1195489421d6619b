"""`rleaas keys …`: API keys."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer
from rlcore import ConfigurationError

from rleaas.cli.console import print_json, print_table, say
from rleaas.cli.options import AsJson, BaseUrl, Key, ProfileName, connect

app = typer.Typer(no_args_is_help=True, help="Make, list and revoke API keys.")

_LIFE = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


@app.command("bootstrap", epilog="Example: `rleaas keys bootstrap --email you@example.com`")
def bootstrap(
    email: Annotated[
        str, typer.Option(help="Whose key it is; they become an admin.")
    ] = "admin@localhost",
    name: Annotated[str, typer.Option(help="What the key is called.")] = "first admin key",
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", file_okay=False, help="The server's data directory."),
    ] = None,
    database_url: Annotated[
        str | None,
        typer.Option("--database-url", metavar="URL", help="Its database [RLEAAS_DATABASE_URL]."),
    ] = None,
    another: Annotated[
        bool, typer.Option("--another", help="Make one although there is an admin's key already.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make the first admin key of a server, on the machine that its database is on.

    The key is printed this once and kept nowhere. A server that runs takes it at once.
    """
    from rlcore.environ import snapshot

    from rleaas.server.bootstrap import bootstrap as make
    from rleaas.server.settings import database_place

    made = make(
        database_place(data, database_url, snapshot()), email=email, name=name, another=another
    )
    if as_json:
        print_json(
            {
                "id": made.id,
                "prefix": made.prefix,
                "email": made.email,
                "key": made.secret.reveal(),
            }
        )
        return
    say(made.secret.reveal())


@app.command("create", epilog="Example: `rleaas keys create ci --scope read --expires-in 30d`")
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is for.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(help="read, write or admin; several times for several [read and write]."),
    ] = None,
    expires_in: Annotated[
        str | None, typer.Option(metavar="TIME", help="Such as 90m, 12h or 30d.")
    ] = None,
    user: Annotated[
        str | None, typer.Option(help="The member that it is for, by id or email.")
    ] = None,
    base_url: BaseUrl = None,
    api_key: Key = None,
    profile: ProfileName = None,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it, this once."""
    seconds = None if expires_in is None else seconds_of(expires_in)
    with connect(base_url, api_key, profile) as client:
        made = client.Keys.create(name, scopes=scope, expires_in=seconds, user=user)
    if as_json:
        print_json(made)
        return
    say(made.key)


@app.command("list")
def list_keys(
    base_url: BaseUrl = None,
    api_key: Key = None,
    profile: ProfileName = None,
    as_json: AsJson = False,
) -> None:
    """List the keys, the newest first; an admin sees all of the organisation."""
    with connect(base_url, api_key, profile) as client:
        found = client.Keys.list()
    if as_json:
        print_json(found)
        return
    print_table(
        ("id", "name", "prefix", "scopes", "active", "expires", "last used"),
        [
            (
                key.id,
                key.name,
                f"{key.prefix}…",
                " ".join(key.scopes),
                "yes" if key.is_active else "no",
                key.expires_at,
                key.last_used_at,
            )
            for key in found
        ],
        empty="No keys. `rleaas keys create NAME` makes one.",
    )


@app.command("revoke")
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="KEY_ID", help="The key's id.")],
    base_url: BaseUrl = None,
    api_key: Key = None,
    profile: ProfileName = None,
    as_json: AsJson = False,
) -> None:
    """End a key at once."""
    with connect(base_url, api_key, profile) as client:
        answer = client.Keys.revoke(key_id)
    if as_json:
        print_json(answer)
        return
    say(f"revoked {answer.id}")


def seconds_of(text: str) -> float:
    """Read a span of time such as `12h`.

    Raises:
        ConfigurationError: it is none.
    """
    found = _LIFE.fullmatch(text.strip())
    if found is None:
        raise ConfigurationError(
            f"--expires-in {text!r} is not a span of time", hint="Write 90m, 12h or 30d."
        )
    return float(found[1]) * _SECONDS[found[2]]
