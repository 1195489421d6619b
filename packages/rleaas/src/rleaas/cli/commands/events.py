"""`rleaas events`: what happens on the platform, as it happens."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, cast

import typer

from rleaas.cli.command import Asked
from rleaas.cli.names import completion
from rleaas.cli.references import EnvOption

if TYPE_CHECKING:
    from rleaas.models import Event


def events(
    asked: Asked,
    environment: EnvOption = None,
    subject: Annotated[
        str | None, typer.Option(help="Only what happens to this, such as tool:tool_1.")
    ] = None,
    job: Annotated[
        str | None,
        typer.Option(
            metavar="JOB_ID",
            help="Only what happens to this job.",
            autocompletion=completion("training_job"),
        ),
    ] = None,
    kind: Annotated[list[str] | None, typer.Option(help="Only this kind; repeatable.")] = None,
    after: Annotated[
        int | None,
        typer.Option(
            min=0, help="Begin after the event with this id; 0 is the first that is kept."
        ),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0, help="Seconds after which it ends [never].")
    ] = None,
) -> None:
    """Print what happens on the platform, one event per line, until Ctrl-C or --timeout.

    With --json, each event is a JSON object on a line of its own.
    """
    found = asked.client.events(
        subject=subject,
        kinds=kind,
        environment=environment,
        job_id=job,
        after=after,
        timeout=timeout,
    )
    asked.stream(found, told)


def told(item: object) -> str:
    """Return an event as a line."""
    event = cast("Event", item)
    at = "" if event.at is None else event.at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    data = json.dumps(event.data, ensure_ascii=False) if event.data else ""
    return f"{event.id}  {at}  {event.subject}  {event.kind}  {data}".rstrip()
