"""How a client opens a session, and how it takes a broken one up again."""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from rlcore import ProtocolException

from rlmesh.protocol.handshake import QUEUE, RESUME
from rlmesh.protocol.identifiers import time_ordered_id

SESSION = "rlmesh-session"
SECRET = "rlmesh-resume"
ATTACH = "rlmesh-attach"
CAPABILITIES = "rlmesh-capabilities"
QUEUE_SECONDS = "rlmesh-queue-seconds"
NUM_ENVS = "rlmesh-num-envs"
LEASE_SECONDS = "rlmesh-lease-seconds"

# The code of a `SessionClosed` for a session that this server does not have.
SESSION_UNKNOWN = "session_unknown"
# The code of a `SessionClosed` by a server that is shutting down, or is there no more.
SERVER_GONE = "server_gone"
SHUTTING_DOWN = "the server is shutting down"
# The code of a `SessionBusy` for a name that was opened already.
SESSION_EXISTS = "session_exists"
# The code of a `SessionClosed` that says only that the way to the session broke: it may go on.
CONNECTION_LOST = "connection_lost"
# The same, where the server broke it: where nobody listens there any more, it was shut down.
CUT_OFF = "cut_off"

# What a server waits for a session to become free when its client has no wish of its own.
DEFAULT_QUEUE_SECONDS = 60.0
SECRET_BYTES = 24
# No session has more environments; how many a server has places for it says itself.
MOST_ENVS = 4096
_RESUMES = "resume"
_OPENS = "open"
_NAME = re.compile(r"[!-~]{1,64}")
_SECRET = re.compile(r"[!-~]{16,128}")
_COUNT = re.compile(r"[0-9]{1,6}")


@dataclass(frozen=True, slots=True)
class Opening:
    """What a client says when it opens a session or comes back to one.

    The client names its session and chooses its secret itself. Saying the same again is therefore
    harmless: where the first attempt arrived, the second one finds the session that it made.

    Attributes:
        session_id: the session's name; empty for a client that cannot resume.
        secret: what proves that somebody else's session is not taken over.
        resume: whether the session has to be there already.
        capabilities: what the client can do beyond the protocol's core.
        queue_seconds: how long it waits for its turn; None: as the server sees fit.
        peer: where it comes from, for people to read.
        num_envs: how many environments it is to have, each with episodes of its own; 0: whatever
            the server serves, as one.
    """

    session_id: str = ""
    secret: str = ""
    resume: bool = False
    capabilities: frozenset[str] = frozenset()
    queue_seconds: float | None = None
    peer: str = ""
    num_envs: int = 0

    @property
    def places(self) -> int:
        """How many of a server's places it takes."""
        return self.num_envs or 1

    @property
    def resumable(self) -> bool:
        """Whether the session outlives its connection."""
        return bool(self.session_id)

    @property
    def queues(self) -> bool:
        """Whether the client understands that it has to wait."""
        return QUEUE in self.capabilities

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return it as names and visible ASCII texts."""
        told = [(CAPABILITIES, ",".join(sorted(self.capabilities)))]
        if self.session_id:
            told += [(SESSION, self.session_id), (SECRET, self.secret)]
            told.append((ATTACH, _RESUMES if self.resume else _OPENS))
        if self.queue_seconds is not None:
            told.append((QUEUE_SECONDS, f"{self.queue_seconds:g}"))
        if self.num_envs:
            told.append((NUM_ENVS, str(self.num_envs)))
        return tuple(told)

    def __repr__(self) -> str:
        return f"Opening({self.session_id!r}, resume={self.resume}, peer={self.peer!r})"


def new_opening(
    capabilities: frozenset[str], queue_seconds: float | None, num_envs: int = 0
) -> Opening:
    """Return the opening of a new session of a client that has these capabilities."""
    if RESUME not in capabilities:
        return Opening(capabilities=capabilities, queue_seconds=queue_seconds, num_envs=num_envs)
    return Opening(
        time_ordered_id(),
        secrets.token_urlsafe(SECRET_BYTES),
        capabilities=capabilities,
        queue_seconds=queue_seconds,
        num_envs=num_envs,
    )


def read_opening(headers: Mapping[str, str], peer: str = "") -> Opening:
    """Return what a client said; a published one says nothing of it.

    Raises:
        ProtocolException: a header cannot be what it is meant to be.
    """
    capabilities = frozenset(filter(None, headers.get(CAPABILITIES, "").split(",")))
    wait = headers.get(QUEUE_SECONDS)
    queue_seconds = None if wait is None else _seconds(QUEUE_SECONDS, wait)
    num_envs = _count(headers.get(NUM_ENVS))
    name = headers.get(SESSION, "")
    if not name:
        return Opening("", "", False, capabilities, queue_seconds, peer, num_envs)
    secret = headers.get(SECRET, "")
    if not _NAME.fullmatch(name) or not _SECRET.fullmatch(secret):
        raise ProtocolException(
            f"{SESSION} has 1 to 64 visible characters and {SECRET} has 16 to 128"
        )
    attach = headers.get(ATTACH, _OPENS)
    if attach not in (_OPENS, _RESUMES):
        raise ProtocolException(f"{ATTACH} is {attach!r}, neither {_OPENS!r} nor {_RESUMES!r}")
    return Opening(name, secret, attach == _RESUMES, capabilities, queue_seconds, peer, num_envs)


def lease_told(headers: Mapping[str, str]) -> float:
    """Return the lease that a server told; 0 when it told none, so that nothing is kept.

    Raises:
        ProtocolException: it is no number of seconds.
    """
    told = headers.get(LEASE_SECONDS)
    return 0.0 if told is None else _seconds(LEASE_SECONDS, told)


def _count(text: str | None) -> int:
    if text is None:
        return 0
    if not _COUNT.fullmatch(text) or not 1 <= int(text) <= MOST_ENVS:
        raise ProtocolException(f"{NUM_ENVS} is {text!r}, not a number from 1 to {MOST_ENVS}")
    return int(text)


def _seconds(name: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ProtocolException(f"{name} is {text!r}, not a number of seconds")
    return seconds
