"""Audit records as clients read them, and as files of them."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from datetime import UTC
from typing import Final

from rleaas.reports import harmless
from rleaas.server.store.tables import AuditRow, JsonObject

COLUMNS: Final = (
    "number",
    "timestamp",
    "id",
    "type",
    "outcome",
    "actor",
    "subject",
    "environment_name",
    "job_id",
    "agent_id",
    "request_id",
    "details",
    "prev_hash",
    "chain_hash",
)


def audit_record(row: AuditRow) -> JsonObject:
    """One record; `chain_hash` covers everything that is told here, and `prev_hash`."""
    return {
        "id": row.event_id,
        "number": row.number,
        "timestamp": row.at.astimezone(UTC).isoformat(timespec="microseconds"),
        "type": row.action,
        "outcome": row.outcome,
        "actor": row.actor,
        "subject": row.subject,
        "environment": row.environment_name,
        "environment_name": row.environment_name,
        "job_id": row.job_id,
        "agent_id": row.agent_id,
        "request_id": row.request_id,
        "organisation_id": row.organisation_id,
        "details": row.data,
        "score": row.data.get("score"),
        "passed": row.data.get("passed"),
        "prev_hash": row.previous,
        "chain_hash": row.digest,
    }


def as_json(rows: Iterable[AuditRow], before: str, after: str) -> Iterator[str]:
    """A JSON array of the records, line by line, between two texts."""
    yield f"{before}["
    separator = "\n"
    for row in rows:
        yield separator + json.dumps(audit_record(row))
        separator = ",\n"
    yield f"\n]{after}\n"


def as_csv(rows: Iterable[AuditRow]) -> Iterator[str]:
    """A header line and one line for each record; what else is known of it is JSON in one cell."""
    yield _line(COLUMNS)
    for row in rows:
        told = audit_record(row)
        told["details"] = json.dumps(row.data, sort_keys=True)
        yield _line([harmless(told[column]) for column in COLUMNS])


def _line(cells: Iterable[object]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue()
