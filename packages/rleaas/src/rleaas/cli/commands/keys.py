"""`rleaas keys …`: API keys."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer
from rlcore import ConfigurationError

from rleaas.cli.command import Asked, command
from rleaas.cli.commands.organisations import limits_from
from rleaas.cli.console import Column, columns, print_json, say
from rleaas.cli.names import completion
from rleaas.cli.nouns import noun
from rleaas.cli.options import AsJson

app = noun("keys")

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
    from rleaas.server.settings import database_place, default_data_dir

    made = make(
        database_place(data, database_url, snapshot()),
        email=email,
        name=name,
        another=another,
        data_dir=default_data_dir() if data is None else data,
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


@command(app, "create", "create ci --scope read --expires-in 30d")
def create(
    asked: Asked,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is for.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(help="read, write or admin; several times for several [read and write]."),
    ] = None,
    expires_in: Annotated[
        str | None, typer.Option(metavar="TIME", help="Such as 90m, 12h or 30d.")
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=NUMBER", help="Such as requests_per_minute=60; repeatable."),
    ] = None,
    user: Annotated[
        str | None, typer.Option(help="The member that it is for, by id or email.")
    ] = None,
) -> None:
    """Make a key and print it, this once."""
    seconds = None if expires_in is None else seconds_of(expires_in)
    made = asked.client.Keys.create(
        name, scopes=scope, expires_in=seconds, limits=limits_from(limit), user=user
    )
    if asked.as_json:
        print_json(made)
        return
    say(made.key)


@command(app, "list", "list --json")
def list_keys(asked: Asked) -> None:
    """List the keys, the newest first; an admin sees all of the organisation."""
    asked.rows(
        asked.client.Keys.list(),
        (
            *columns("id", "name"),
            Column("prefix", lambda one: f"{one.prefix}…"),
            Column("scopes", lambda one: " ".join(one.scopes)),
            Column("active", "is_active"),
            Column("expires", "expires_at"),
            Column("last used", "last_used_at"),
        ),
        empty="No keys. `rleaas keys create NAME` makes one.",
    )


@command(app, "revoke", "revoke key_1")
def revoke(
    asked: Asked,
    key_id: Annotated[
        str,
        typer.Argument(
            metavar="KEY_ID", help="The key's id.", autocompletion=completion("api_key")
        ),
    ],
) -> None:
    """End a key at once."""
    answer = asked.client.Keys.revoke(key_id)
    asked.done(answer, f"revoked {answer.id}")


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
