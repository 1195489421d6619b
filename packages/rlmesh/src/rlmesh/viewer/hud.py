"""What is told beside the picture: counts, rates, and how the episodes went."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Final, TypedDict

from rlmesh.runs.outcomes import Outcome
from rlmesh.viewer.trace import Trace

if TYPE_CHECKING:
    from rlmesh.runs.hooks import StepEvent
    from rlmesh.runs.results import EpisodeResult

MOST_ROWS: Final = 200
"""How many of the last episodes are listed."""

_RATE_SECONDS: Final = 0.5


class Counts(TypedDict):
    """The counts as JSON holds them; the published ones first."""

    step: int
    reward: float | None
    outcome: str
    model_ms: float
    env_ms: float
    sps: float
    fps: float
    elapsed_s: float
    episode: int
    episodes: int
    seed: int
    width: int
    height: int
    chunk_pos: int
    chunk_len: int
    step_reward: float | None
    lane: int
    lanes: int
    finished: int
    success_rate: float | None


@dataclass(frozen=True, slots=True)
class EpisodeRow:
    """A finished episode as it is listed."""

    episode: int
    seed: int | None
    steps: int
    reward: float | None
    outcome: str
    seconds: float

    def to_dict(self) -> dict[str, object]:
        """Return it as JSON holds it."""
        return {
            "episode": self.episode,
            "seed": -1 if self.seed is None else self.seed,
            "steps": self.steps,
            "reward": finite(self.reward),
            "outcome": self.outcome,
            "seconds": round(self.seconds, 3),
        }


@dataclass(slots=True)
class LaneState:
    """The open episode of one lane."""

    episode: int = 0
    seed: int = -1
    step: int = 0
    reward: float = 0.0
    step_reward: float = 0.0
    outcome: str = ""
    model_ms: float = 0.0
    env_ms: float = 0.0
    chunk_pos: int = 0
    chunk_len: int = 1
    returns: Trace = field(default_factory=Trace)
    rewards: Trace = field(default_factory=Trace)

    def take(self, event: StepEvent) -> None:
        """Count a step."""
        self.episode, self.seed = event.episode, event.seed
        self.step = event.step + 1
        self.reward += event.reward
        self.step_reward = event.reward
        self.env_ms = event.step_ms
        if event.predict_ms > 0 or event.step == 0:
            self.model_ms = event.predict_ms
            self.chunk_pos = 0
        else:  # an action of a chunk that was predicted before
            self.chunk_pos += 1
            self.chunk_len = max(self.chunk_len, self.chunk_pos + 1)
        self.returns.add(self.reward)
        self.rewards.add(event.reward)


class Hud:
    """Counts what a run tells; read by other threads, which see a moment soon enough.

    Args:
        episodes: how many are planned, or None.
    """

    def __init__(self, episodes: int | None = None) -> None:
        self._planned = episodes
        self._lanes: dict[int, LaneState] = {}
        self._started = monotonic()
        self._ended: float | None = None
        self._finished = 0
        self._successes = 0
        self._judged = 0
        self._rows: deque[EpisodeRow] = deque(maxlen=MOST_ROWS)
        self._returns = Trace()
        self._steps = Rate()
        self._frames = Rate()
        self.focus = 0
        self.size = (0, 0)

    @property
    def finished(self) -> int:
        """How many episodes have ended."""
        return self._finished

    def begin(self) -> None:
        """Start the clock, or let it go on."""
        if self._ended is not None:
            self._started += monotonic() - self._ended
            self._ended = None

    def end(self) -> None:
        """Stop the clock."""
        self._ended = monotonic()

    def reset(self, *, episode: int, seed: int | None, lane: int) -> None:
        """A lane's next episode begins."""
        before = self._lanes.get(lane)
        length = 1 if before is None else before.chunk_len
        given = -1 if seed is None else seed
        self._lanes[lane] = LaneState(episode, given, chunk_len=length)

    def step(self, event: StepEvent) -> None:
        """Count a step."""
        lane = self._lanes.get(event.lane)
        if lane is None or lane.episode != event.episode:
            self.reset(episode=event.episode, seed=event.seed, lane=event.lane)
            lane = self._lanes[event.lane]
        lane.take(event)
        self._steps.count += 1

    def frame(self, width: int, height: int) -> None:
        """Count a picture."""
        self.size = (width, height)
        self._frames.count += 1

    def episode(self, result: EpisodeResult) -> None:
        """Count a finished episode."""
        self._finished += 1
        if result.outcome.scored:
            if result.success is not None:
                self._judged += 1
                self._successes += result.success
            if result.reward is not None:
                self._returns.add(result.reward)
        word = outcome_of(result)
        row = EpisodeRow(
            result.index, result.seed, result.steps, result.reward, word, result.duration_s
        )
        self._rows.append(row)
        for lane in self._lanes.values():
            if lane.episode == result.index:
                lane.outcome = word

    def to_dict(self) -> Counts:
        """Return the counts, those of the lane in focus where they are about one."""
        now = self._ended or monotonic()
        lane = self._lanes.get(self.focus) or LaneState()
        width, height = self.size
        return {
            "step": lane.step,
            "reward": finite(lane.reward),
            "outcome": lane.outcome,
            "model_ms": round(lane.model_ms, 3),
            "env_ms": round(lane.env_ms, 3),
            "sps": round(self._steps.per_second(now), 1),
            "fps": round(self._frames.per_second(now), 1),
            "elapsed_s": round(now - self._started, 3),
            "episode": lane.episode,
            "episodes": self._planned or 0,
            "seed": lane.seed,
            "width": width,
            "height": height,
            "chunk_pos": lane.chunk_pos,
            "chunk_len": lane.chunk_len,
            "step_reward": finite(lane.step_reward),
            "lane": self.focus,
            "lanes": len(self._lanes),
            "finished": self._finished,
            "success_rate": self._successes / self._judged if self._judged else None,
        }

    def curves(self) -> dict[str, object]:
        """Return the curves of the open episode in focus, and of the returns of finished ones."""
        lane = self._lanes.get(self.focus) or LaneState()
        return {
            "return": _curve(lane.returns),
            "reward": _curve(lane.rewards),
            "returns": _curve(self._returns),
        }

    def rows(self) -> list[dict[str, object]]:
        """Return the last finished episodes, in the order in which they ended."""
        return [row.to_dict() for row in list(self._rows)]


class Rate:
    """How often something happens, over the last moments. Counted by one thread, read by others."""

    def __init__(self) -> None:
        self.count = 0
        self._seen = (monotonic(), 0)
        self._last = 0.0

    def per_second(self, now: float) -> float:
        """Return how often in a second."""
        since, count = self._seen
        passed = now - since
        if passed >= _RATE_SECONDS:
            self._last = (self.count - count) / passed
            self._seen = (now, self.count)
        return self._last


def outcome_of(result: EpisodeResult) -> str:
    """Return how an episode ended: `success`, `failure`, `timeout`, `done`, or what failed."""
    if not result.outcome.scored:
        # `timeout` is what an episode's own limit is called.
        lost = result.outcome is Outcome.TIMEOUT
        return "env_timeout" if lost else result.outcome.value
    if result.success is not None:
        return "success" if result.success else "failure"
    return "timeout" if result.truncated and not result.terminated else "done"


def finite(number: float | None) -> float | None:
    """Return a number as JSON can hold it; None for what is none."""
    return number if number is not None and math.isfinite(number) else None


def _curve(trace: Trace) -> dict[str, object]:
    return {"every": trace.every, "points": [finite(point) for point in trace.points()]}
