"""Which episodes are still to be played, which are finished, and whether that is enough."""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from rlmesh.runs.budget import Plan
from rlmesh.runs.results import EpisodeResult
from rlmesh.runs.signals import CannotGoOn, Enough

Rule = Callable[[Sequence[EpisodeResult]], bool]


class Scoreboard:
    """Hands out episodes in order and takes their results; any number of players may share it.

    Rules that end a run early look at the results in the order of their index, up to the first
    that is missing, and the result of such a run ends where the rule was fulfilled: so it is the
    same however many play, and however their episodes overlap.

    Args:
        planned: the episodes.
        finished: those that need not be played again, by index.
        max_failures: end when more than so many have no score.
        enough: end when it says so of the results so far.

    Attributes:
        halted: whether nothing is to be played any more; players look at it between steps.
        verdict: what ended the run by a rule.
    """

    def __init__(
        self,
        planned: Sequence[Plan],
        finished: Mapping[int, EpisodeResult],
        *,
        max_failures: int | None = None,
        enough: Rule | None = None,
    ) -> None:
        self.halted = False
        self.verdict: CannotGoOn | Enough | None = None
        self._planned = len(planned)
        self._queue = deque(plan for plan in planned if plan.index not in finished)
        self._results = dict(finished)
        self._errors: dict[int, BaseException] = {}
        self._max_failures = max_failures
        self._enough = enough
        self._in_order: list[EpisodeResult] = []
        self._failures = 0
        self._out = 0
        self._change = threading.Condition()
        with self._change:
            self._judge()

    @property
    def is_done(self) -> bool:
        """Whether every planned episode has its result."""
        return len(self._results) == self._planned

    def take(self, *, wait: bool = True) -> Plan | None:
        """Return the next episode to play; None when there is none.

        Args:
            wait: until the episodes that others are playing have ended, as they may be given back.
        """
        with self._change:
            while wait and not self.halted and not self._queue and self._out:
                self._change.wait()
            if self.halted or not self._queue:
                return None
            self._out += 1
            return self._queue.popleft()

    def give_back(self, plan: Plan) -> None:
        """Have an episode played again, before all others."""
        with self._change:
            self._out -= 1
            self._queue.appendleft(plan)
            self._change.notify_all()

    def record(self, result: EpisodeResult, error: BaseException | None) -> None:
        """Take the result of an episode, and what it failed of; `judge` is to follow."""
        with self._change:
            self._out -= 1
            self._results[result.index] = result
            if error is not None:
                self._errors[result.index] = error
            self._change.notify_all()

    def judge(self) -> None:
        """Ask the rules about the results that were recorded."""
        with self._change:
            try:
                self._judge()
            finally:
                self._change.notify_all()

    def halt(self) -> None:
        """Have nothing played any more."""
        with self._change:
            self.halted = True
            self._change.notify_all()

    def results(self) -> tuple[EpisodeResult, ...]:
        """Return the results by index: all of them, or those that a rule ended the run with."""
        with self._change:
            if self.verdict is not None:
                return tuple(self._in_order)
            return tuple(self._results[index] for index in sorted(self._results))

    def _judge(self) -> None:
        if self.verdict is not None:
            return
        results, in_order = self._results, self._in_order
        while (result := results.get(len(in_order))) is not None:
            in_order.append(result)
            verdict = self._verdict(result)
            if verdict is not None:
                self.verdict, self.halted = verdict, True
                return

    def _verdict(self, last: EpisodeResult) -> CannotGoOn | Enough | None:
        if not last.outcome.scored:
            self._failures += 1
            most = self._max_failures
            if most is not None and self._failures > most:
                reason = f"{self._failures} episodes failed, more than max_failures={most}"
                return CannotGoOn(f"{reason}; the last: {last.error}", self._errors.get(last.index))
        more = len(self._in_order) < self._planned
        if more and self._enough is not None and self._enough(self._in_order):
            return Enough("stop_when said that this is enough")
        return None
