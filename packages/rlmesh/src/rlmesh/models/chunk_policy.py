"""A model in this process whose actions come in chunks, replayed before the next is predicted."""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, Final

from rlcore import InvalidActionError

from rlmesh.models.batching import stack, unstack
from rlmesh.models.chunks import frames_of
from rlmesh.models.horizon import usable_horizon, usable_lead
from rlmesh.models.local_policy import LocalPolicy
from rlmesh.models.model import Model
from rlmesh.models.policy import PolicyEpisode

# Any, in this room: observations and actions of whichever space and framework.

_LOGGER: Final = logging.getLogger(__name__)


def chunk_policy(model: Model, horizon: int, lead: int, *, owns_model: bool = False) -> LocalPolicy:
    """Return the policy of a model that uses so many actions of each chunk.

    Raises:
        ConfigurationError: the model's chunks are shorter.
    """
    usable = usable_horizon(
        horizon,
        model=model.name,
        chunks=model.corners.predict_chunk is not None,
        native_chunk=model.native_chunk,
    )
    lead = usable_lead(lead, model=model.name, chunks=model.corners.predict_chunk is not None)
    if usable == 1 and not lead:
        return LocalPolicy(model, owns_model=owns_model)
    return ChunkPolicy(model, usable, lead, owns_model=owns_model)


class ChunkPolicy(LocalPolicy):
    """Predicts `horizon` actions at a time; what is left at the end of an episode is dropped.

    With a lead, the next chunk is predicted beside the environment, from the first observation
    after whose own action at most so many are left. Which one that is does not depend on how fast
    either side is.
    """

    def __init__(
        self, model: Model, horizon: int, lead: int = 0, *, owns_model: bool = False
    ) -> None:
        super().__init__(model, owns_model=owns_model)
        self.horizon = horizon
        self._lead = lead
        self._told = False
        self._ahead: ThreadPoolExecutor | None = None
        # The model is asked from one thread at a time, the one that predicts ahead included.
        self._turn: threading.Lock | nullcontext[None] = nullcontext()
        if lead:
            self._ahead = ThreadPoolExecutor(1, thread_name_prefix=f"rlmesh-ahead-{self.name}")
            self._turn = threading.Lock()

    @property
    def fuses(self) -> bool:
        """Whether observations of several environments may share one call."""
        return self.corners.predict_chunk_batch is not None and self.model.allow_fusion

    def predict(self, observation: object, episode: PolicyEpisode) -> object:
        """Return the next action of the chunk, predicting one where none is left."""
        return self.predict_each([observation], [episode])[0]

    def predict_batch(self, observation: object, episodes: Sequence[PolicyEpisode]) -> object:
        """Return the next action of each lane's chunk; lanes that ran out share one prediction."""
        if not any(map(self._predicts, episodes)):
            return self._next([], episodes)
        return self._next(self._split(observation, len(episodes)), episodes)

    def predict_each(
        self, observations: Sequence[object], episodes: Sequence[PolicyEpisode]
    ) -> list[object]:
        """Return the next action of each episode's chunk."""
        if not any(map(self._predicts, episodes)):
            return self._next([], episodes)
        return self._next([self._convert(each) for each in observations], episodes)

    def end(self, episode: PolicyEpisode) -> None:
        """Close the episode; a chunk that is being predicted for it is waited for, and dropped."""
        if episode.coming is not None:
            self._drop(episode.coming[0])
            episode.coming = None
        episode.queue.clear()
        super().end(episode)

    def close(self) -> None:
        """Forget what is open, and end the thread that predicts ahead."""
        if self._ahead is not None:
            self._ahead.shutdown(wait=True, cancel_futures=True)
        super().close()

    def _predicts(self, episode: PolicyEpisode) -> bool:
        """Tell whether the next action may need a prediction, now or ahead."""
        return len(episode.queue) <= self._lead + 1 if self._lead else not episode.queue

    def _next(self, given: Sequence[Any], episodes: Sequence[PolicyEpisode]) -> list[object]:
        empty: list[int] = []
        for lane, episode in enumerate(episodes):
            episode.steps += 1
            episode.predicted_now = not episode.queue
            if episode.queue:
                continue
            if episode.coming is None:
                empty.append(lane)
            else:
                (coming, place), episode.coming = episode.coming, None
                episode.queue.extend(coming.result()[place])
        if empty:
            asking = [episodes[lane] for lane in empty]
            steps = [episode.steps for episode in asking]
            chunks = self._chunks([given[lane] for lane in empty], asking, steps)
            for episode, frames in zip(asking, chunks, strict=True):
                episode.queue.extend(frames)
        actions = [episode.queue.popleft() for episode in episodes]
        if self._ahead is not None:
            self._predict_ahead(self._ahead, given, episodes)
        return actions

    def _predict_ahead(
        self, ahead: ThreadPoolExecutor, given: Sequence[Any], episodes: Sequence[PolicyEpisode]
    ) -> None:
        low = [
            lane
            for lane, episode in enumerate(episodes)
            if episode.coming is None and len(episode.queue) <= self._lead
        ]
        if not low:
            return
        asking = [episodes[lane] for lane in low]
        steps = [episode.steps + len(episode.queue) + 1 for episode in asking]
        coming = ahead.submit(self._chunks, [given[lane] for lane in low], asking, steps)
        for place, episode in enumerate(asking):
            episode.coming = (coming, place)

    def _chunks(
        self, given: Sequence[Any], episodes: Sequence[PolicyEpisode], steps: Sequence[int]
    ) -> list[list[object]]:
        """Return the actions to use for each observation, which is in the model's values.

        `steps` says which step of its episode each chunk begins with.
        """
        with self._turn:
            try:
                chunks = self._predicted(given, episodes)
            except Exception as error:
                self._note(error, given[0] if len(given) == 1 else list(given))
                raise
        return [
            self._frames(chunk, observation, episode, step)
            for chunk, observation, episode, step in zip(
                chunks, given, episodes, steps, strict=True
            )
        ]

    def _predicted(self, given: Sequence[Any], episodes: Sequence[PolicyEpisode]) -> list[Any]:
        corners, many = self.corners, len(given) > 1
        if corners.predict_chunk_batch is not None and many:
            batch = stack(given, native=self._native, leaf=self.model.leaf)
            return unstack(corners.predict_chunk_batch(batch, self.horizon, episodes), len(given))
        pairs = zip(given, episodes, strict=True)
        if corners.predict_chunk is not None:
            return [corners.predict_chunk(each, self.horizon, episode) for each, episode in pairs]
        if corners.predict_batch is not None and many:
            batch = stack(given, native=self._native, leaf=self.model.leaf)
            return [[one] for one in unstack(corners.predict_batch(batch, episodes), len(given))]
        return [[corners.predict(each, episode)] for each, episode in pairs]

    def _frames(
        self, chunk: object, observation: object, episode: PolicyEpisode, step: int
    ) -> list[object]:
        native = self.model.native_chunk
        try:
            frames = frames_of(chunk)
            if native is not None and len(frames) != native:
                raise InvalidActionError(
                    f"the chunk holds {len(frames)} actions, and native_chunk says {native}"
                )
        except InvalidActionError as error:
            raise self._answers.refusal(error, chunk, observation, episode, step) from error
        if len(frames) < self.horizon and not self._told:
            self._told = True
            warnings.warn(
                f"{self.name!r} predicted {len(frames)} actions where {self.horizon} were asked "
                "for; it is asked again when they are used up",
                RuntimeWarning,
                stacklevel=2,
            )
        used = frames[: self.horizon]
        for at, action in enumerate(used):
            self._answers.check(action, observation, episode, step + at)
        return used

    def _drop(self, coming: Future[list[list[Any]]]) -> None:
        error = coming.exception()
        if error is not None:
            _LOGGER.warning(
                "%s failed while it predicted ahead for an episode that has ended",
                self.name,
                exc_info=error,
            )
