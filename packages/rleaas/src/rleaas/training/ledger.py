"""The book of finished episodes: the budget, the running means, the target."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from rleaas.training.config import TrainingConfig
from rleaas.training.trainer import Progress

AVERAGE_OVER = 100
SUCCESS_KEYS = ("is_success", "success", "task_success")


class EpisodeLedger:
    """Counts episodes against a budget and keeps the statistics of the last `average_over`.

    Where the environment's info never tells success, an episode whose return reaches
    `success_threshold` counts as one; without a threshold there is no success rate.
    """

    def __init__(
        self,
        budget: int,
        *,
        clock: Callable[[], float],
        success_threshold: float | None = None,
        target_reward: float | None = None,
        average_over: int = AVERAGE_OVER,
    ) -> None:
        self._budget = budget
        self._average_over = average_over
        self._threshold = success_threshold
        self._target = target_reward
        self._clock = clock
        self._started = clock()
        self._returns: deque[float] = deque(maxlen=average_over)
        self._successes: deque[bool | None] = deque(maxlen=average_over)
        self._episode = 0
        self._last: tuple[float, int] | None = None
        self._earlier_seconds = 0.0
        self._tier: int | None = None
        self._scores: Mapping[str, float] | None = None
        self._composite: float | None = None
        self.best_reward: float | None = None
        self.timestep = 0
        self.rollouts = 0

    def start(self) -> None:
        """Let the time of the training count from here: what had to be made for it is there."""
        self._started = self._clock()

    @property
    def episode(self) -> int:
        """How many episodes have finished."""
        return self._episode

    @property
    def spent(self) -> bool:
        """Whether the budget of episodes is used up."""
        return self._episode >= self._budget

    @property
    def remaining(self) -> float:
        """The share of the budget that is left, from 1 to 0."""
        return max(0.0, 1.0 - self._episode / self._budget)

    @property
    def window_full(self) -> bool:
        """Whether the running mean rests on its whole window (or on the smaller budget)."""
        return len(self._returns) >= min(self._average_over, self._budget)

    @property
    def target_reached(self) -> bool:
        """Whether the running mean return is at the target, over a full window."""
        mean = self.avg_reward
        return (
            self._target is not None
            and mean is not None
            and self.window_full
            and mean >= self._target
        )

    @property
    def avg_reward(self) -> float | None:
        """The mean return of the last `average_over` episodes, None before the first."""
        return sum(self._returns) / len(self._returns) if self._returns else None

    @property
    def success_rate(self) -> float | None:
        """The share of successes among those of the same episodes that could be judged."""
        judged = [success for success in self._successes if success is not None]
        return sum(judged) / len(judged) if judged else None

    @property
    def seconds(self) -> float:
        """How long the job has trained, over all its attempts."""
        return self._earlier_seconds + self._clock() - self._started

    def add(self, reward: float, length: int, info: Mapping[str, object]) -> Progress:
        """Enter a finished episode."""
        self._episode += 1
        self._last = (reward, length)
        self._returns.append(reward)
        self._successes.append(self._judge(reward, info))
        # The wrappers around a session write these into the info of an episode's last step.
        tier, scores = info.get("tier"), info.get("verifier_scores")
        composite = info.get("composite_verifier_score")
        self._tier = tier if isinstance(tier, int) else None
        self._scores = cast("Mapping[str, float]", scores) if isinstance(scores, dict) else None
        self._composite = composite if isinstance(composite, float) else None
        if self.best_reward is None or reward > self.best_reward:
            self.best_reward = reward
        return self.progress()

    def progress(self) -> Progress:
        """Where the training stands now."""
        reward, length = self._last or (None, None)
        return Progress(
            episode=self._episode,
            timestep=self.timestep,
            episode_reward=reward,
            episode_length=length,
            avg_reward=self.avg_reward,
            success_rate=self.success_rate,
            wall_seconds=self.seconds,
            tier=self._tier,
            verifier_scores=self._scores,
            composite_verifier_score=self._composite,
        )

    def state(self) -> dict[str, object]:
        """All counts and the window, as an object of JSON, for a restart of the job."""
        return {
            "episode": self._episode,
            "timestep": self.timestep,
            "rollouts": self.rollouts,
            "best_reward": self.best_reward,
            "last": None if self._last is None else list(self._last),
            "returns": list(self._returns),
            "successes": list(self._successes),
            "seconds": self.seconds,
            "tier": self._tier,
        }

    def restore(self, state: Mapping[str, object]) -> None:
        """Go on from such an object; a malformed one raises KeyError, TypeError or ValueError."""
        self._episode = int(cast("int", state["episode"]))
        self.timestep = int(cast("int", state["timestep"]))
        self.rollouts = int(cast("int", state["rollouts"]))
        best, last = state["best_reward"], state["last"]
        self.best_reward = None if best is None else float(cast("float", best))
        if last is not None:
            reward, length = cast("Sequence[float]", last)
            self._last = float(reward), int(length)
        self._returns.extend(float(one) for one in cast("Sequence[float]", state["returns"]))
        self._successes.extend(
            None if one is None else bool(one)
            for one in cast("Sequence[bool | None]", state["successes"])
        )
        self._earlier_seconds = float(cast("float", state["seconds"]))
        self._tier = cast("int | None", state["tier"])

    def _judge(self, reward: float, info: Mapping[str, object]) -> bool | None:
        for key in SUCCESS_KEYS:
            if key in info:
                return bool(info[key])
        return None if self._threshold is None else reward >= self._threshold


def ledger_of(
    config: TrainingConfig, clock: Callable[[], float], *, reward_threshold: float | None
) -> EpisodeLedger:
    """Return the book of a training; without a target, the environment's threshold is success."""
    target = config.target_reward
    return EpisodeLedger(
        config.num_episodes,
        clock=clock,
        success_threshold=reward_threshold if target is None else target,
        target_reward=target,
        average_over=config.average_over or AVERAGE_OVER,
    )
