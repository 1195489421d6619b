"""`rleaas audit …`: the audit chain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rleaas.cli.console import print_facts, print_json, print_table, say
from rleaas.cli.failures import FAILURE
from rleaas.cli.options import AsJson, BaseUrl, Key, ProfileName, connect

app = typer.Typer(no_args_is_help=True, help="Read, export and verify the audit records.")

Environment = Annotated[
    str | None, typer.Option("--env", metavar="ENV", help="Only records about this environment.")
]
Types = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="TYPE", help="Only this type; may be said several times."),
]
Since = Annotated[str | None, typer.Option(metavar="TIME", help="From then on, in ISO 8601.")]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Until then, in ISO 8601.")]


@app.command("list", epilog="Example: `rleaas audit list --type tool --outcome denied --json`")
def list_records(
    environment: Environment = None,
    types: Types = None,
    since: Since = None,
    until: Until = None,
    outcome: Annotated[str | None, typer.Option(help="`allowed` or `denied`.")] = None,
    job: Annotated[str | None, typer.Option(metavar="JOB_ID", help="About this job.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="How many at most; 0 is all.")] = 50,
    base_url: BaseUrl = None,
    api_key: Key = None,
    profile: ProfileName = None,
    as_json: AsJson = False,
) -> None:
    """List records, newest first."""
    with connect(base_url, api_key, profile) as client:
        events = client.AuditLog.query(
            environment, types, since, until, limit, job_id=job, outcome=outcome
        )
    if as_json:
        print_json(events)
        return
    print_table(
        ("number", "time", "type", "outcome", "actor", "subject", "environment"),
        [
            (e.number, e.timestamp, e.type, e.outcome, e.actor, e.subject, e.environment)
            for e in events
        ],
        empty="No audit records.",
    )


@app.command("export", epilog="Example: `rleaas audit export audit.csv --since 2026-01-01`")
def export(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Where to; .csv makes it CSV.")],
    format: Annotated[
        str | None, typer.Option(help="`json` or `csv`, whatever the file is called.")
    ] = None,
    environment: Environment = None,
    types: Types = None,
    since: Since = None,
    until: Until = None,
    base_url: BaseUrl = None,
    api_key: Key = None,
    profile: ProfileName = None,
) -> None:
    """Write all records to a file, in the order of the chain."""
    chosen = format or ("csv" if path.suffix.lower() == ".csv" else "json")
    with connect(base_url, api_key, profile) as client:
        say(client.AuditLog.export(path, environment, since, until, chosen, event_types=types))


@app.command("verify", epilog="Example: `rleaas audit verify --head 3f2a…` with a head kept before")
def verify(
    head: Annotated[
        str | None,
        typer.Option(metavar="HASH", help="A head from before, which the chain must still have."),
    ] = None,
    base_url: BaseUrl = None,
    api_key: Key = None,
    profile: ProfileName = None,
    as_json: AsJson = False,
) -> int:
    """Check that no record was changed, removed or put in; exit code 1 when one was."""
    with connect(base_url, api_key, profile) as client:
        state = client.AuditLog.verify()
        kept = (
            head is None
            or head == state.head
            or any(event.chain_hash == head for event in client.AuditLog.iterate())
        )
    if as_json:
        print_json({**state.to_dict(), "has_head": kept})
    elif state.valid and kept:
        say("the audit chain holds together")
        print_facts({"records": state.records, "head": state.head})
    else:
        missing = None if kept else "the chain does not have the head from before"
        print_facts({"broken at record": state.number, "problem": state.problem or missing})
    return 0 if state.valid and kept else FAILURE
