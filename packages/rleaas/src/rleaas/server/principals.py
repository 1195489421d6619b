"""Who a bearer is: the holder of a key, a worker, or whoever is at this machine."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from rlcore import AuthenticationError, Secret, ServerFailure, TokenRejected, verify_token
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from rleaas.server.keys import ServerKeys
from rleaas.server.rules import lifecycle
from rleaas.server.rules.grants import tightest
from rleaas.server.rules.worker_tokens import read_subject
from rleaas.server.store import keys
from rleaas.server.store.database import Database
from rleaas.server.store.outages import outage_of
from rleaas.server.store.tables import FIRST_ORGANISATION, ApiKeyRow, JobRow, OrganisationRow

logger = logging.getLogger("rleaas.server.principals")

Scope = Literal["read", "write", "admin"]
EVERYTHING: Final = frozenset({"read", "write", "admin"})
READING: Final = frozenset({"read"})
WORKER: Final = "worker"
# How long another server of the same database may take for a revoked key.
REMEMBERED_SECONDS: Final = 2.0
# How long a worker may read and report after its job has ended.
GOODBYE_SECONDS: Final = 60.0
# How precisely it is known when a key was last used.
USED_SECONDS: Final = 60.0
MOST_REMEMBERED: Final = 10_000


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks, for which organisation, and what they may.

    Attributes:
        organisation_id: whose rows they see and make.
        organisation: its name.
        user_id: the person or program; `local` at a server without keys.
        email: theirs.
        scopes: `read`, `write`, `admin`.
        key_id: the key they came with, where they did.
        key_prefix: how its text begins, which says which one it is and does not open anything.
        limits: quotas and rates by name, the tighter of those of key and organisation.
        shared_limits: those of the organisation alone, which all of its keys share.
        expires_at: when their key ends, where it does.
    """

    organisation_id: int
    organisation: str
    user_id: str
    email: str
    scopes: frozenset[str]
    key_id: int | None = None
    key_prefix: str | None = None
    limits: tuple[tuple[str, float], ...] = ()
    shared_limits: tuple[tuple[str, float], ...] = ()
    expires_at: datetime | None = None

    @property
    def is_operator(self) -> bool:
        """Whether they run the server: an admin of the organisation that it began with."""
        return self.organisation_id == FIRST_ORGANISATION and "admin" in self.scopes

    def limit(self, name: str) -> float | None:
        """Return the quota or rate of this name; None: there is none."""
        return dict(self.limits).get(name)

    @property
    def actor(self) -> str:
        """How records name them."""
        return self.user_id if self.key_id is None else f"{self.user_id} (key {self.key_id})"


LOCAL: Final = Principal(FIRST_ORGANISATION, "default", "local", "local@localhost", EVERYTHING)
OPERATOR: Final = Principal(
    FIRST_ORGANISATION, "default", "operator", "operator@localhost", EVERYTHING
)


class Principals:
    """Finds out who a bearer is.

    Args:
        database: where the keys are.
        signing: what the tokens of workers are signed with.
        operator: the key from the server's settings, where there is one.
        is_open: whether whoever has no key, or an unknown one, is taken for somebody at this
            machine.
    """

    def __init__(
        self,
        database: Database,
        signing: ServerKeys,
        *,
        operator: Secret | None,
        is_open: bool,
    ) -> None:
        self._database = database
        self._signing = signing
        self._operator = operator
        self._is_open = is_open
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, Principal | str]] = {}
        self._used: dict[int, float] = {}

    def remembered(self, bearer: str | None) -> Principal | None:
        """Return who it is where that needs no look into the database; None: ask `find`.

        Raises:
            AuthenticationError: there is no bearer, or it has lost its rights.
        """
        if bearer is None:
            if self._is_open:
                return LOCAL
            raise AuthenticationError(
                "an API key is needed", hint="Send it as 'Authorization: Bearer <key>'"
            )
        secret = Secret(bearer)
        if self._operator is not None and secret == self._operator:
            return OPERATOR
        with self._lock:
            known = self._known.get(keys.digest_of(secret))
        if known is None or time.monotonic() >= known[0]:
            return None
        return _accepted(known[1])

    def find(self, bearer: str) -> Principal:
        """Return who it is.

        Raises:
            AuthenticationError: it is unknown, expired or revoked.
        """
        secret = Secret(bearer)
        found = self._worker(bearer) or self._holder(secret)
        if found is None:
            if self._is_open:
                return LOCAL
            raise AuthenticationError("the API key is not valid here")
        with self._lock:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            self._known[keys.digest_of(secret)] = (time.monotonic() + REMEMBERED_SECONDS, found)
        return _accepted(found)

    def forget(self) -> None:
        """Look into the database again, as a key has changed."""
        with self._lock:
            self._known.clear()

    def _worker(self, bearer: str) -> Principal | None:
        try:
            claims = verify_token(self._signing.workers, bearer, subject=None, now=time.time())
        except TokenRejected:
            return None  # then it has to be a key
        subject = read_subject(claims.subject)
        if subject is None:
            return None
        job_id = subject.job_id
        with self._database.read() as session:
            # It ends with its job, but for a moment in which the worker says goodbye.
            late = datetime.now(UTC) - timedelta(seconds=GOODBYE_SECONDS)
            found = session.execute(
                select(OrganisationRow.id, OrganisationRow.name)
                .join(JobRow, JobRow.organisation_id == OrganisationRow.id)
                .where(
                    JobRow.id == job_id,
                    JobRow.status.not_in(tuple(lifecycle.TERMINAL)) | (JobRow.completed_at > late),
                )
            ).first()
        if found is None:
            return None
        return Principal(found.id, found.name, f"{WORKER}:{job_id}", "", READING)

    def _holder(self, secret: Secret) -> Principal | str | None:
        now = datetime.now(UTC)
        with self._database.read() as session:
            found = keys.find_secret(session, secret)
        if found is None:
            return None
        row = found.key
        if not row.is_active:
            return f"the API key {row.prefix}... was revoked"
        if row.expires_at is not None and row.expires_at <= now:
            return f"the API key {row.prefix}... expired at {row.expires_at.isoformat()}"
        self._note_use(row, now)
        shared = found.organisation.limits
        return Principal(
            row.organisation_id,
            found.organisation.name,
            found.user.id,
            found.user.email,
            frozenset(row.scopes),
            row.id,
            row.prefix,
            tuple(sorted(tightest(shared, row.limits).items())),
            tuple(sorted(tightest(shared).items())),
            row.expires_at,
        )

    def _note_use(self, row: ApiKeyRow, now: datetime) -> None:
        # Not at each request: that would be a write for each.
        last = row.last_used_at
        if last is not None and (now - last).total_seconds() < USED_SECONDS:
            return
        with self._lock:  # of many requests at once, one notes it for all
            noted = self._used.get(row.id)
            if noted is not None and time.monotonic() - noted < USED_SECONDS:
                return
            self._used[row.id] = time.monotonic()
        try:
            with self._database.write() as session:
                keys.touch(session, row.id, now)
        except (ServerFailure, SQLAlchemyError) as error:
            if outage_of(error) is None:
                raise
            # A full disk must not keep anybody from reading.
            logger.warning("the use of key %s could not be noted: %s", row.id, error)


def _accepted(found: Principal | str) -> Principal:
    if isinstance(found, str):
        raise AuthenticationError(found, hint="Ask for a new key")
    return found
