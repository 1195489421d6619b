"""Training and evaluation share no scenario: which ones would be shared, and with what."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, cast

from rlcore import ConflictError
from sqlalchemy import select
from sqlalchemy.orm import Session

from rleaas.server.rules import library
from rleaas.server.store.tables import JsonObject, ScenarioRow, SuiteRow

TRAINING: Final = "training"
EVALUATION: Final = "evaluation"
_OTHER: Final = {TRAINING: EVALUATION, EVALUATION: TRAINING}
_NAMED: Final = 5


def require_apart(
    session: Session, scenario_ids: Sequence[str], purpose: str, *, but: str | None = None
) -> None:
    """Refuse scenarios for one purpose that a suite for the other one has.

    The same scenario is the one with the same id, a copy of it from the library, and one with the
    same task, start and tools.

    Args:
        session: a transaction.
        scenario_ids: what is to be used.
        purpose: `training` or `evaluation`.
        but: the id of a suite that does not count.

    Raises:
        ConflictError: there are some; they are named (`scenarios_shared`).
    """
    ours = dict(_identities(session, scenario_ids))
    if not ours:
        return
    other = _OTHER[purpose]
    for suite_id, listed in _suites(session, other):
        if suite_id == but:
            continue
        theirs = {key: one for one, keys in _identities(session, listed) for key in keys}
        shared = [
            one if theirs[key] == one else f"{one} (as {theirs[key]})"
            for one, keys in ours.items()
            if (key := next((key for key in sorted(keys) if key in theirs), None)) is not None
        ]
        if shared:
            more = f" and {len(shared) - _NAMED} more" if len(shared) > _NAMED else ""
            raise ConflictError(
                f"for {purpose}: {', '.join(shared[:_NAMED])}{more}, which the {other} suite "
                f"{suite_id!r} has",
                code="scenarios_shared",
                hint="What an agent learned on says nothing about what it can: use others",
            )


def _suites(session: Session, purpose: str) -> Iterator[tuple[str, Sequence[str]]]:
    for row in session.scalars(select(SuiteRow).where(SuiteRow.purpose == purpose)):
        yield row.id, row.scenario_ids
    for suite in library.suites():
        if suite.purpose == purpose:
            yield suite.id, suite.scenario_ids


def _identities(
    session: Session, scenario_ids: Iterable[str]
) -> Iterator[tuple[str, frozenset[str]]]:
    """Each scenario with what it is the same as."""
    wanted = list(scenario_ids)
    rows = {
        row.id: row
        for row in session.scalars(select(ScenarioRow).where(ScenarioRow.id.in_(wanted)))
    }
    for one in wanted:
        row = rows.get(one)
        yield one, frozenset({one} if row is None else {one, *_of_row(row)})


def _of_row(row: ScenarioRow) -> Iterator[str]:
    given = row.details.get("context_injection")
    context = dict(cast("JsonObject", given)) if isinstance(given, Mapping) else {}
    based_on = context.get(library.BASED_ON)
    if isinstance(based_on, str):
        yield based_on
    cloned = row.details.get("cloned_from")
    if isinstance(cloned, str):
        yield cloned
    if row.task_prompt or context.keys() - {library.BASED_ON}:
        content = [row.task_prompt, context, row.details.get("available_tools")]
        yield hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
