"""`rleaas org …`: organisations, their members and limits."""

from __future__ import annotations

from typing import Annotated

import typer
from rlcore import ConfigurationError

from rleaas.cli.command import Asked, command
from rleaas.cli.confirm import Yes, confirm
from rleaas.cli.console import Column, columns, print_json, say
from rleaas.cli.nouns import noun
from rleaas.cli.references import OrganisationRef

app = noun("org")

SHOWN = (*columns("id", "name", "limits"), Column("created", "created_at"))
_MEMBER = (*columns("user id", "email", "role"), Column("joined", "joined_at"))

Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="NAME=NUMBER",
        help="environments, jobs, storage_bytes, requests_per_minute, job_wall_seconds, "
        "job_timesteps or job_processes; repeatable.",
    ),
]
User = Annotated[str, typer.Argument(metavar="USER", help="The member's email or id.")]


@command(app, "list", "list")
def list_organisations(asked: Asked) -> None:
    """List the organisations that you may see, the oldest first."""
    asked.rows(asked.client.Organisation.list(), SHOWN, empty="No organisations.")


@command(app, "get", "get lab")
def get(asked: Asked, organisation: OrganisationRef) -> None:
    """Show one organisation."""
    asked.facts(asked.client.Organisation.get(organisation), SHOWN)


@command(app, "create", "create lab --admin me@lab.example --limit environments=20")
def create(
    asked: Asked,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name.")],
    admin: Annotated[str, typer.Option(metavar="EMAIL", help="Whose the first admin's key is.")],
    limit: Limits = None,
) -> None:
    """Add an organisation, and print the key of its first admin, this once."""
    made = asked.client.Organisation.create(name, admin=admin, limits=limits_from(limit))
    if asked.as_json:
        print_json(made)
        return
    say(made.key.key)


@command(app, "set-limits", "set-limits lab --limit jobs=4 --limit requests_per_minute=600")
def set_limits(asked: Asked, organisation: OrganisationRef, limit: Limits = None) -> None:
    """Set all limits of an organisation; one that is left out is lifted."""
    limits = limits_from(limit) or {}
    asked.facts(asked.client.Organisation.set_limits(organisation, limits), SHOWN)


@command(app, "members", "members lab")
def members(asked: Asked, organisation: OrganisationRef) -> None:
    """List the people in an organisation, in the order in which they joined."""
    asked.rows(asked.client.Organisation.members(organisation), _MEMBER, empty="Nobody.")


@command(app, "put-member", "put-member lab you@lab.example --role admin")
def put_member(
    asked: Asked,
    organisation: OrganisationRef,
    email: Annotated[str, typer.Argument(metavar="EMAIL", help="Who it is.")],
    role: Annotated[str, typer.Option(help="`member` or `admin`.")] = "member",
) -> None:
    """Take somebody into an organisation, or change their role."""
    asked.facts(asked.client.Organisation.put_member(organisation, email, role), _MEMBER)


@command(app, "remove-member", "remove-member lab you@lab.example --yes")
def remove_member(
    asked: Asked, organisation: OrganisationRef, user: User, yes: Yes = False
) -> None:
    """Take somebody out of an organisation; their keys there end at once."""
    confirm(f"Remove {user} from {organisation}?", yes=yes)
    asked.client.Organisation.remove_member(organisation, user)
    asked.done({"user": user, "removed": True}, f"removed {user}")


def limits_from(pairs: list[str] | None) -> dict[str, float] | None:
    """Read NAME=NUMBER limits; None where there are none.

    Raises:
        ConfigurationError: one is not of this form.
    """
    if pairs is None:
        return None
    limits: dict[str, float] = {}
    for pair in pairs:
        name, _, text = pair.partition("=")
        try:
            limits[name] = int(text) if text.isdecimal() else float(text)
        except ValueError as error:
            raise ConfigurationError(
                f"--limit {pair!r} is not NAME=NUMBER", hint="Write it as jobs=4."
            ) from error
    return limits
