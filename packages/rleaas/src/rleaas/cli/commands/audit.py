"""`rleaas audit …`: the audit chain."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Annotated

import typer
from rlcore.environ import snapshot

from rleaas.cli.command import Asked, command
from rleaas.cli.console import Column, columns, print_facts, print_json, say
from rleaas.cli.failures import FAILURE
from rleaas.cli.known_keys import known_keys, trusted
from rleaas.cli.names import completion
from rleaas.cli.nouns import noun
from rleaas.cli.options import Offset
from rleaas.resources.report_signature import verify_report

app = noun("audit")

Environment = Annotated[
    str | None,
    typer.Option(
        "--env",
        metavar="ENV",
        help="Only records about this environment.",
        autocompletion=completion("environment"),
    ),
]
Types = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="TYPE", help="Only this type; may be said several times."),
]
Since = Annotated[str | None, typer.Option(metavar="TIME", help="From then on, in ISO 8601.")]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Until then, in ISO 8601.")]


_LISTED = (
    *columns("number"),
    Column("time", "timestamp"),
    *columns("type", "outcome", "actor", "subject", "environment"),
)


def _query(
    asked: Asked,
    environment: Environment = None,
    types: Types = None,
    since: Since = None,
    until: Until = None,
    outcome: Annotated[str | None, typer.Option(help="`allowed` or `denied`.")] = None,
    actor: Annotated[str | None, typer.Option(help="Who did it.")] = None,
    subject: Annotated[
        str | None, typer.Option(help="What it was done to, such as tool:tool_1.")
    ] = None,
    job: Annotated[str | None, typer.Option(metavar="JOB_ID", help="About this job.")] = None,
    agent: Annotated[str | None, typer.Option(metavar="AGENT", help="About this agent.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="How many at most; 0 is all.")] = 50,
    offset: Offset = 0,
) -> None:
    """List records, newest first."""
    asked.rows(
        asked.client.AuditLog.query(
            environment,
            types,
            since,
            until,
            limit,
            offset,
            job,
            agent,
            actor=actor,
            outcome=outcome,
            subject=subject,
        ),
        _LISTED,
        empty="No audit records.",
    )


command(app, "list", "list --type tool --outcome denied --json")(_query)
command(app, "query", "query --env Bank --since 2026-01-01 --actor me@lab.example")(_query)


@command(app, "get", "get aud_1")
def get(
    asked: Asked,
    record: Annotated[str, typer.Argument(metavar="RECORD_ID", help="The record's id.")],
) -> None:
    """Show one record with its place in the chain."""
    asked.facts(
        asked.client.AuditLog.get_event(record),
        (
            *columns("id", "number"),
            Column("time", "timestamp"),
            *columns("type", "outcome", "actor", "subject", "environment", "job id", "agent id"),
            *columns("request id", "details"),
            Column("previous hash", "prev_hash"),
            Column("hash", "chain_hash"),
        ),
    )


@command(app, "export", "export audit.csv --since 2026-01-01")
def export(
    asked: Asked,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Where to; .csv makes it CSV.")],
    format: Annotated[
        str | None, typer.Option(help="`json` or `csv`, whatever the file is called.")
    ] = None,
    environment: Environment = None,
    types: Types = None,
    since: Since = None,
    until: Until = None,
) -> None:
    """Write all records to a file, in the order of the chain."""
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    chosen = format or ("csv" if path.suffix.lower() == ".csv" else "json")
    saved = asked.client.AuditLog.export(path, environment, since, until, chosen, event_types=types)
    asked.done({"saved": saved}, saved)


@command(
    app,
    "verify-report",
    "verify-report report.pdf --public-key platform.pem",
    "verify-report report.json --signature report.json.sig --public-key platform.pem",
)
def check_report(
    asked: Asked,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The report.")],
    signature: Annotated[
        str | None,
        typer.Option(
            metavar="SIGNATURE",
            help="The signature, or a file that has it; else FILE.sig beside the report.",
        ),
    ] = None,
    public_key: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The public key, of `rleaas audit report-key`."),
    ] = None,
    sha256: Annotated[str | None, typer.Option(help="The digest that it must have, too.")] = None,
) -> None:
    """Check that a report is, byte for byte, what the platform signed; exit with 1 if it is not.

    With --public-key nobody is asked, and the platform may be gone. Without it the platform says
    its key itself: the first one is kept, and another one later is refused.
    """
    trust = "given"
    if public_key is None:
        key = asked.client.AuditLog.report_key()
        public_key = key.public_key
        found = verify_report(path, signature, public_key, sha256=sha256)
        trust = trusted(known_keys(snapshot()), asked.client.base_url, key, path)
    else:
        found = verify_report(path, signature, public_key, sha256=sha256)
    told = {
        "given": "",
        "known": ", which this platform had before, too",
        "first_use": f", which is kept as that of {asked.client.base_url} from now on: nothing "
        "but the platform itself says that it is (compare it with `rleaas audit report-key` "
        "on the server)",
    }[trust]
    asked.done(
        {**found.to_dict(), "trust": trust},
        f"{path} is what key {found.key_id} signed{told}; its SHA-256 is {found.sha256}",
    )


@command(app, "report-key", "report-key > platform.pem", "report-key --json")
def report_key(asked: Asked) -> None:
    """Print the public key with which `verify-report` checks reports, as PEM."""
    found = asked.client.AuditLog.report_key()
    asked.done(found, found.public_key.strip())


@command(app, "verify", "verify --head 3f2a…")
def verify(
    asked: Asked,
    head: Annotated[
        str | None,
        typer.Option(metavar="HASH", help="A head from before, which the chain must still have."),
    ] = None,
) -> int:
    """Check that no record was changed, removed or put in; exit with 1 when one was.

    The newest record is sealed with server.key, so that whoever has only the database is found out,
    also at the end of the chain. Three things show only with --head and a head that you kept
    elsewhere: what was forged by somebody who has server.key, too; an older copy of the whole
    database, put back; and that all records are gone together with their seal. A record
    `audit.sealed` says that a chain was sealed as it was found: there is one if an older version,
    or `rleaas keys bootstrap` before the first start, had begun it.
    """
    state = asked.client.AuditLog.verify()
    kept = (
        head is None
        or head == state.head
        or any(event.chain_hash == head for event in asked.client.AuditLog.iterate())
    )
    if asked.as_json:
        print_json({**state.to_dict(), "has_head": kept})
    elif state.valid and kept:
        say("the audit chain holds together")
        print_facts({"records": state.records, "head": state.head})
    else:
        missing = None if kept else "the chain does not have the head from before"
        print_facts({"broken at record": state.number, "problem": state.problem or missing})
    return 0 if state.valid and kept else FAILURE
