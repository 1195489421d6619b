"""Refused requests on their way to the audit chain: counted, so that no flood fills it.

A refusal is recorded with the next round. The same one again within a minute is only counted, and
recorded with its count when the minute is over. What differs is limited, too: paths are recorded as
their routes, and beyond so many different refusals the rest are counted together.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from starlette.requests import Request

from rleaas.server.principals import Principal
from rleaas.server.store import audit
from rleaas.server.store.audit import ServerItself
from rleaas.server.store.database import Database
from rleaas.server.store.tables import FIRST_ORGANISATION

QUIET_SECONDS: Final = 60.0
MOST_DIFFERENT: Final = 500
ACTION: Final = "access.denied"
_REST: Final = "other requests"


@dataclass(frozen=True, slots=True)
class Denial:
    """What was refused to whom, and why."""

    organisation_id: int
    actor: str
    subject: str
    status: int
    code: str
    reason: str


@dataclass(slots=True)
class _Count:
    quiet_until: float
    times: int = 0
    first: datetime = field(default_factory=lambda: datetime.now(UTC))
    last: datetime = field(default_factory=lambda: datetime.now(UTC))
    request_id: str | None = None


class Denials:
    """Collects refusals; `flush` records them."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: dict[Denial, _Count] = {}

    def note(self, denial: Denial, request_id: str | None) -> None:
        """Count a refusal."""
        with self._lock:
            if denial not in self._counts and len(self._counts) >= MOST_DIFFERENT:
                denial = Denial(denial.organisation_id, "several", _REST, denial.status, "", "")
            count = self._counts.setdefault(denial, _Count(quiet_until=0.0))
            if count.times == 0:
                count.first = datetime.now(UTC)
            count.times += 1
            count.last = datetime.now(UTC)
            count.request_id = request_id

    def flush(self, *, everything: bool = False) -> bool:
        """Record what is due, or everything; returns False: the next round is early enough."""
        now = self._clock()
        due: list[tuple[Denial, _Count]] = []
        with self._lock:
            for denial, count in list(self._counts.items()):
                if count.quiet_until > now and not everything:
                    continue
                if count.times:
                    due.append((denial, count))
                    self._counts[denial] = _Count(quiet_until=now + QUIET_SECONDS)
                else:
                    del self._counts[denial]
        for number, (denial, count) in enumerate(due):
            try:
                self._record(denial, count)
            except BaseException:
                self._put_back(due[number:])
                raise
        return False

    def _put_back(self, unrecorded: list[tuple[Denial, _Count]]) -> None:
        with self._lock:
            for denial, count in unrecorded:
                since = self._counts.get(denial)
                if since is not None and since.times:
                    count.times += since.times
                    count.last = since.last
                self._counts[denial] = count

    def _record(self, denial: Denial, count: _Count) -> None:
        organisation = denial.organisation_id
        with self._database.write(organisation) as session:
            audit.record(
                session,
                ServerItself(organisation, denial.actor, count.request_id),
                action=ACTION,
                subject=denial.subject,
                outcome=audit.DENIED,
                data={
                    "status": denial.status,
                    "code": denial.code,
                    "reason": denial.reason,
                    "times": count.times,
                    "first": count.first.isoformat(),
                    "last": count.last.isoformat(),
                },
            )


def note_refused(request: Request, status: int, code: str, reason: str) -> None:
    """Count the refusal of a request; `access.principal_of` has left there who asked."""
    denials = request.app.state.denials
    assert isinstance(denials, Denials)
    found = getattr(request.state, "principal", None)
    principal = found if isinstance(found, Principal) else None
    peer = "nobody" if request.client is None else request.client.host
    route = request.scope.get("route")
    denials.note(
        Denial(
            FIRST_ORGANISATION if principal is None else principal.organisation_id,
            f"unknown at {peer}" if principal is None else principal.actor,
            f"{request.method} {getattr(route, 'path', 'no route')}",
            status,
            code,
            reason,
        ),
        getattr(request.state, "request_id", None),
    )
