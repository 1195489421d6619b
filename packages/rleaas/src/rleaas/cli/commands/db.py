"""`rleaas db …`: the data of a server, on the machine that it is on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rleaas.cli.console import print_facts, print_json, say, stderr
from rleaas.cli.nouns import noun
from rleaas.cli.options import AsJson

if TYPE_CHECKING:
    from rleaas.server.store.database import Database

app = noun("db")

Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        file_okay=False,
        help="The server's data directory [the user's data directory].",
    ),
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        metavar="URL",
        help="Its database, where that is not in the data directory [RLEAAS_DATABASE_URL].",
    ),
]


@app.command("current", epilog="Example: `rleaas db current --data /srv/rleaas`")
def current(data: Data = None, database_url: DatabaseUrl = None, as_json: AsJson = False) -> None:
    """Show the revision of the tables, and the migrations that this rleaas would run."""
    database = _database(data, database_url)
    try:
        found = database.schema()
    finally:
        database.close()
    pending = [{"revision": step.revision, "what": step.what} for step in found.pending]
    if as_json:
        print_json({"current": found.current, "newest": found.newest, "pending": pending})
        return
    print_facts({"current": found.current or "none", "newest": found.newest})
    for step in found.pending:
        say(f"pending  {step.revision}  {step.what}")


@app.command("upgrade", epilog="Example: `rleaas db upgrade --dry-run`")
def upgrade(
    data: Data = None,
    database_url: DatabaseUrl = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say which migrations would be run.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Bring the tables to the newest revision, in one transaction; `rleaas serve` does it too.

    No server may be using the data. Make a backup first: there is no way back but to restore it.
    """
    from rleaas.server.backup.upgrading import upgrade as run

    place_of_data, place = _places(data, database_url)
    found = run(place_of_data, place, dry_run=dry_run)
    steps = [{"revision": step.revision, "what": step.what} for step in found.pending]
    if as_json:
        print_json(
            {"from": found.current, "to": found.newest, "migrations": steps, "done": not dry_run}
        )
        return
    for step in found.pending:
        say(f"{'would run' if dry_run else 'ran'}  {step.revision}  {step.what}")
    if not found.pending:
        say(f"the tables have the newest revision, {found.newest}, already")


@app.command("backup", epilog="Example: `rleaas db backup --to /backups/rleaas.zip`")
def backup(
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", metavar="FILE", help="The archive [rleaas-backup-<time>.zip in this directory]."
        ),
    ] = None,
    data: Data = None,
    database_url: DatabaseUrl = None,
    artifacts_url: Annotated[
        str | None,
        typer.Option(
            "--artifacts-url",
            metavar="URL",
            help="Where the files of checkpoints lie, when the server was told "
            "[RLEAAS_ARTIFACTS_URL].",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write everything that a server keeps to one archive, also while it runs.

    That is all rows and files as they were at one moment, with their digests, and the server's
    secret: whoever can read the archive can do what the server can.
    """
    from datetime import UTC, datetime

    from rlcore.environ import snapshot

    from rleaas.server.backup.making import backup as make
    from rleaas.server.backup.making import default_name
    from rleaas.server.settings import artifacts_url as settled

    place_of_data, place = _places(data, database_url)
    made = make(
        place_of_data,
        place,
        to or Path(default_name(datetime.now(UTC))),
        artifacts_url=settled(artifacts_url, snapshot()),
    )
    facts: dict[str, object] = {
        "path": str(made.path),
        "size_bytes": made.size_bytes,
        "revision": made.revision,
        "rows": made.rows,
        "files": made.files,
        "missing": list(made.missing),
        "audit_problem": made.audit_problem,
    }
    _tell(facts, as_json=as_json)


@app.command(
    "restore", epilog="Example: `rleaas db restore rleaas-backup-20260101T000000Z.zip --data new`"
)
def restore(
    archive: Annotated[Path, typer.Argument(metavar="FILE", help="What `rleaas db backup` wrote.")],
    data: Data = None,
    database_url: DatabaseUrl = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace what is there, which is then gone.")
    ] = False,
    allow_broken_audit: Annotated[
        bool,
        typer.Option(
            "--allow-broken-audit", help="Take up an audit chain that does not hold together."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Take a backup up in an empty place, all of it or nothing; no server may be using it.

    Digests, tables, references between rows and files, and the audit chain are checked before
    anything is put in its place. A backup of SQLite can be restored to PostgreSQL, and back.
    """
    from rleaas.server.backup.restoring import restore as take_up

    place_of_data, place = _places(data, database_url)
    done = take_up(
        archive, place_of_data, place, force=force, allow_broken_audit=allow_broken_audit
    )
    facts: dict[str, object] = {
        "data": str(place_of_data),
        "revision": done.revision,
        "from_revision": done.from_revision,
        "rows": done.rows,
        "files": done.files,
        "missing": list(done.missing),
        "audit_problem": done.audit_problem,
    }
    _tell(facts, as_json=as_json)


def _tell(facts: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        print_json(facts)
    else:
        print_facts(facts)
    if facts["missing"]:
        stderr().print("warning: rows refer to files that the server has lost; see `missing`")
    if facts["audit_problem"]:
        stderr().print(f"warning: the audit chain is broken: {facts['audit_problem']}")


def _places(data: Path | None, database_url: str | None) -> tuple[Path, Path | str]:
    from rlcore.environ import snapshot

    from rleaas.server.settings import database_place, default_data_dir

    found = default_data_dir() if data is None else data
    return found, database_place(found, database_url, snapshot())


def _database(data: Path | None, database_url: str | None) -> Database:
    from rleaas.server.backup.upgrading import existing

    return existing(_places(data, database_url)[1])
