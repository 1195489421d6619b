"""What a database cannot do right now, told so that clients ask again instead of giving up.

A database that is busy, full or away is no fault of the request, nor one that nobody foresaw: it
is answered with status 503 and the time after which to ask again. What was being written is undone.
"""

import errno
from typing import Final

from rlcore import ServerFailure
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionInTime

# How long a request waits for its turn to write, for a connection or for a lock.
WAIT_SECONDS: Final = 10
_RETRY_AFTER: Final = 1.0
_RETRY_AFTER_FULL: Final = 10.0
_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_FULL: Final = ("database or disk is full", "no space left on device")
_BUSY: Final = ("database is locked", "lock timeout")


def busy() -> ServerFailure:
    """Return the failure of a request that did not get its turn in time."""
    return ServerFailure(
        f"the database was busy for {WAIT_SECONDS} s; nothing was changed",
        status_code=503,
        code="database_busy",
        retry_after=_RETRY_AFTER,
        hint="Ask again, with the same idempotency key",
    )


def outage_of(error: BaseException) -> ServerFailure | None:
    """Return what an error of the database or of a file is to clients; None: it is no outage."""
    if isinstance(error, ServerFailure) and error.status_code == 503:
        return error
    if isinstance(error, NoConnectionInTime):
        return busy()
    if isinstance(error, OSError) and error.errno in _NO_SPACE:
        return _full()
    if not isinstance(error, DBAPIError):
        return None
    said = str(error.orig).lower()
    if any(text in said for text in _FULL):
        return _full()
    if any(text in said for text in _BUSY):
        return busy()
    if error.connection_invalidated or isinstance(error, OperationalError | InterfaceError):
        return ServerFailure(
            "the database does not answer",
            status_code=503,
            code="database_unreachable",
            retry_after=_RETRY_AFTER,
            hint="Ask again, with the same idempotency key",
        )
    return None


def _full() -> ServerFailure:
    return ServerFailure(
        "the disk of the server is full; nothing was changed",
        status_code=503,
        code="storage_full",
        retry_after=_RETRY_AFTER_FULL,
        hint="Tell whoever runs the server",
    )
