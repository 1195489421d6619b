"""The policy of a run as its players share it: one at a time, and within a time."""

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from rlmesh.models.policy import Policy, PolicyEpisode
from rlmesh.runs.helper_thread import HelperThread
from rlmesh.runs.seat import Seat

T = TypeVar("T")


class Predictor:
    """Calls a policy for players, which may be several.

    Args:
        policy: the policy, which is used by one of them at a time.
        seconds: how long a prediction may take; it is then made on a thread of its own.
        shared: whether there are several players.

    Attributes:
        predict: the action for an observation, in an episode.
        predict_batch: the actions of several lanes, likewise.
    """

    def __init__(self, policy: Policy, *, seconds: float | None, shared: bool) -> None:
        self.policy = policy
        self._seconds = seconds
        self._lock = threading.RLock()
        self._helper: HelperThread | None = None
        self.predict: Callable[[object, PolicyEpisode], object] = policy.predict
        self.predict_batch: Callable[[object, Sequence[PolicyEpisode]], object] = (
            policy.predict_batch
        )
        if seconds is not None:
            self._helper = HelperThread(f"the model {policy.name!r}")
            self.predict = self._within(self.predict, seconds)
            self.predict_batch = self._within(self.predict_batch, seconds)
        if shared:
            self.predict = self._in_turn(self.predict)
            self.predict_batch = self._in_turn(self.predict_batch)

    @property
    def is_stuck(self) -> bool:
        """Whether a prediction never came back."""
        return self._helper is not None and self._helper.is_stuck

    def bind(self, seat: Seat) -> None:
        """Tell the policy what it plays on.

        Raises:
            ConfigurationError: it does not fit.
        """
        lanes = seat.target.lanes
        with self._lock:
            self.policy.bind(
                seat.target.env.env_contract,
                num_envs=1 if lanes is None else lanes,
                action_space=seat.action_space,
            )

    def begin(self, episode_id: str, seed: int) -> PolicyEpisode:
        """Open an episode."""
        with self._lock:
            return self.policy.begin(episode_id, seed)

    def end(self, episode: PolicyEpisode | None) -> None:
        """Close an episode; where a prediction never came back, nobody is there to be told."""
        if episode is not None and not self.is_stuck:
            with self._lock:
                self.policy.end(episode)

    def close(self) -> None:
        """Let the thread of predictions end."""
        if self._helper is not None:
            self._helper.end()

    def _in_turn(self, function: Callable[..., T]) -> Callable[..., T]:
        lock = self._lock

        def call(observation: object, episode: object) -> T:
            with lock:
                return function(observation, episode)

        return call

    def _within(self, function: Callable[..., T], seconds: float) -> Callable[..., T]:
        helper = self._helper
        assert helper is not None

        def call(observation: object, episode: object) -> T:
            return helper.call(function, observation, episode, seconds=seconds, layer="model")

        return call
