"""What the environment host knows of a version: its start, its process, what it serves."""

from concurrent.futures import Future
from dataclasses import dataclass, field

from sqlalchemy.orm import Session

from rleaas.server.envhost.process import Served
from rleaas.server.rules import lifecycle
from rleaas.server.store.tables import JsonObject, VersionRow


@dataclass(frozen=True, slots=True)
class Hosted:
    """An environment version that answers, with the identity it was registered under."""

    address: str
    needs_token: bool
    contract: JsonObject
    contract_digest: str


def new_outcome() -> Future[Hosted]:
    """What a start comes to, for all who wait for it."""
    outcome: Future[Hosted] = Future()
    # Many may wait for it: one of them that gives up must not cancel it for the others.
    outcome.set_running_or_notify_cancel()
    return outcome


@dataclass(slots=True, eq=False)
class Start:
    """One bring-up. Whoever sets `stopped` also says its outcome."""

    version_id: int
    outcome: Future[Hosted] = field(default_factory=new_outcome)
    process: Served | None = None
    stopped: bool = False


@dataclass(slots=True)
class Slot:
    """What there is of a version: a start under way, or the process and what it serves."""

    start: Start | None = None
    process: Served | None = None
    hosted: Hosted | None = None


class Stopped(Exception):
    """The start was given up by somebody who has said so already."""


def require_wanted(session: Session, start: Start) -> None:
    """Refuse to go on with a start that somebody has given up.

    Raises:
        Stopped: it is not wanted any more.
    """
    version = session.get(VersionRow, start.version_id)
    if start.stopped or version is None or version.status == lifecycle.DEPROVISIONED:
        raise Stopped
