"""The policy of a run as its players share it: one at a time, and within a time."""

import threading
from collections.abc import Callable, Iterable, Sequence
from time import monotonic
from typing import TypeVar

from rlcore import CallTimeout

from rlmesh.models.policy import Policy, PolicyEpisode
from rlmesh.runs.episode import Episode
from rlmesh.runs.helper_thread import HelperThread, Until
from rlmesh.runs.seat import Seat

T = TypeVar("T")
E = TypeVar("E")

BACK_SECONDS = 5.0
"""How long a prediction may go on after the time of its episode, before the model is given up."""


class Predictor:
    """Calls a policy for players, which may be several.

    Args:
        policy: the policy, which is used by one of them at a time.
        seconds: how long a prediction may take; it is then made on a thread of its own.
        shared: whether there are several players.
        bounded: whether episodes or the run have a time; predictions are then made there as well.

    Attributes:
        predict: the action for an observation, in an episode.
        predict_batch: the actions of several lanes, likewise.
    """

    def __init__(
        self, policy: Policy, *, seconds: float | None, shared: bool, bounded: bool = False
    ) -> None:
        self.policy = policy
        self._seconds = seconds
        self._untils: dict[str, Until] = {}
        # What a served model is asked can be given up; a call in this process cannot.
        self._interrupt: Callable[[], object] | None = getattr(policy, "interrupt", None)
        self._lock = threading.RLock()
        self._helper: HelperThread | None = None
        self.predict: Callable[[object, PolicyEpisode], object] = policy.predict
        self.predict_batch: Callable[[object, Sequence[PolicyEpisode]], object] = (
            policy.predict_batch
        )
        if seconds is not None or bounded:
            self._helper = HelperThread(f"the model {policy.name!r}")
            self.predict = self._within(self.predict, lambda episode: self._until((episode,)))
            self.predict_batch = self._within(self.predict_batch, self._until)
        if shared:
            self.predict = self._in_turn(self.predict)
            self.predict_batch = self._in_turn(self.predict_batch)

    @property
    def is_remote(self) -> bool:
        """Whether predictions go over a wire."""
        return hasattr(self.policy, "address")

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

    def begin(self, episode_id: str, seed: int, until: Until) -> PolicyEpisode:
        """Open an episode, in which no prediction may go on after a moment."""
        with self._lock:
            episode = self.policy.begin(episode_id, seed)
        self._untils[episode.episode_id] = until
        return episode

    def end(self, episode: PolicyEpisode | None) -> None:
        """Close an episode; where a prediction never came back, nobody is there to be told."""
        if episode is None:
            return
        self._untils.pop(episode.episode_id, None)
        if not self.is_stuck:
            with self._lock:
                self.policy.end(episode)

    def end_after(self, error: BaseException, episodes: Iterable[Episode]) -> None:
        """Close episodes that something ended in the middle, which learns what fails besides."""
        for episode in episodes:
            known, episode.known = episode.known, None
            try:
                self.end(known)
            except Exception as second:
                what = f"{type(second).__name__}: {second}"
                error.add_note(f"Ending episode {episode.plan.index} failed as well: {what}")

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

    def _until(self, episodes: Sequence[PolicyEpisode]) -> Until:
        """The moment when the last of these has to end: all of them share what they wait for."""
        return max((self._untils[episode.episode_id] for episode in episodes), key=_moment)

    def _within(
        self, function: Callable[[object, E], T], until_of: Callable[[E], Until]
    ) -> Callable[[object, E], T]:
        helper, each = self._helper, self._seconds
        assert helper is not None

        def call(observation: object, episode: E) -> T:
            until = until_of(episode)
            limit = until if each is None else until.sooner(monotonic() + each, "model")
            seconds = limit.seconds if each is None or limit is until else each
            if seconds <= 0:
                name = function.__name__
                raise CallTimeout(f"no time is left for {name}", operation=name, layer=limit.layer)
            try:
                return helper.call(
                    function, observation, episode, seconds=seconds, layer=limit.layer
                )
            except CallTimeout:
                if helper.is_stuck and self._interrupt is not None:
                    self._interrupt()
                    helper.comes_back(BACK_SECONDS)
                elif limit.layer == "episode":
                    # The model need not hang: its episode ended while it was predicting.
                    helper.comes_back(BACK_SECONDS)
                raise

        return call


def _moment(until: Until) -> float:
    return until.at
