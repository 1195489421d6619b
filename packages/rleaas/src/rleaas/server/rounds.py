"""Work that the server does by itself, again and again, in one thread."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

logger = logging.getLogger("rleaas.server.rounds")


@dataclass(slots=True)
class Round:
    """Something to do every so many seconds; it returns whether there is more to do at once."""

    name: str
    seconds: float
    work: Callable[[], bool]
    due: float = field(default=0.0)


class Rounds:
    """Does its rounds until it is stopped; one that fails is logged, and done again when due."""

    def __init__(self, rounds: Sequence[Round]) -> None:
        self._rounds = list(rounds)
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin."""
        self._thread = threading.Thread(target=self._run, name="rleaas-rounds", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End after the round that is being done."""
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def hurry(self, name: str) -> None:
        """Do this round now."""
        for one in self._rounds:
            if one.name == name:
                one.due = 0.0
        self._wake.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            now = time.monotonic()
            for one in self._rounds:
                if one.due <= now and not self._stopping.is_set():
                    one.due = now + one.seconds
                    if self._done(one):
                        one.due = 0.0
            soonest = min(one.due for one in self._rounds)
            self._wake.wait(max(0.0, soonest - time.monotonic()))

    def _done(self, one: Round) -> bool:
        try:
            return one.work()
        except Exception:
            # It must outlive a full disk or a locked database; it tries again.
            logger.exception("%s failed; it is tried again in %g s", one.name, one.seconds)
            return False
