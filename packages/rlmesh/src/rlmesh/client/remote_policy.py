"""A served model as a run drives it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from rlcore import (
    ConfigurationError,
    Error,
    SessionClosed,
    UnsupportedError,
)
from rlcore.log import logger

from rlmesh.backends.frameworks import FrameworkName
from rlmesh.client.model_codecs import ModelCodecs
from rlmesh.client.model_link import AGAIN, ModelLink, hinted
from rlmesh.client.remote_episode import RemoteEpisode
from rlmesh.protocol.handshake import MORE_SPACES
from rlmesh.protocol.model_faults import Asked, ModelFaultReceived, model_error_of
from rlmesh.protocol.model_requests import INSTRUCTION, LONGEST_HORIZON, ROWS, Leaves, Row
from rlmesh.spaces import needs_more_spaces
from rlmesh.specs import EnvContract
from rlmesh.transport.model_lane import ModelLane

# Any, in this room: values of whichever space and framework.

log = logger("rlmesh", "client")
# A server that does not answer a goodbye in this time keeps nothing of us: the stream ends.
GOODBYE_SECONDS: Final = 1.0


class RemotePolicy:
    """Asks a served model for every action, or for as many of each answer as the horizon says.

    Where the stream to the model breaks, the episodes that were open are lost, as what the model
    knew of them is; the next episode opens another one.

    Args:
        link: the connection, which is the policy's own.
        framework: whose values actions become.
        horizon: how many actions are wanted of each answer.
        lead: ask for the next ones as soon as at most so many are left, without waiting.
        instruction: what to do, instead of what the environment says.
    """

    def __init__(
        self,
        link: ModelLink,
        framework: FrameworkName,
        *,
        horizon: int,
        lead: int,
        instruction: str | None,
    ) -> None:
        self._link = link
        self.framework: FrameworkName = framework
        self.name = link.answering.name
        self.digest = link.answering.digest
        self.content = link.answering.content
        self._horizon = horizon
        self._lead = lead if horizon > 1 else 0
        self._instruction = instruction
        self._codecs: ModelCodecs | None = None
        self._lane: ModelLane | None = None
        self._sent: deque[tuple[str, Sequence[RemoteEpisode]]] = deque()
        self._keeps_rows_apart = link.answering.welcome.offers(ROWS)
        self._closed = False
        self._check_options()

    @property
    def address(self) -> str:
        """Where the model is served."""
        return self._link.address

    @property
    def fuses(self) -> bool:
        """Whether observations of several environments may share one request."""
        return True

    def bind(
        self, contract: EnvContract | None, *, num_envs: int, action_space: object = None
    ) -> None:
        """Open a route for an environment; the model may refuse it.

        Raises:
            ConfigurationError: the environment has no contract, so that its values cannot travel.
            UnsupportedError: the server is a published one, which does not know its spaces.
            ModelException: the model does not fit it.
            TransportError: the server is gone.
        """
        if contract is None:
            raise ConfigurationError(
                f"the environment has no spaces that can travel to the model at {self.address}",
                hint="Give it an observation_space and an action_space of gymnasium's.",
            )
        spaces = (contract.observation_space, contract.action_space)
        knows_more = self._link.answering.welcome.offers(MORE_SPACES)
        if not knows_more and any(needs_more_spaces(space) for space in spaces):
            raise UnsupportedError(
                f"{contract.id!r} has Sequence, Graph or OneOf spaces, which the model server at "
                f"{self.address} does not know"
            )
        self._hang_up()
        self._codecs = ModelCodecs(contract, self.framework, self.name)
        self._lane = self._opened(self._codecs)

    def begin(self, episode_id: str, seed: int | None) -> RemoteEpisode:
        """Open an episode; the server hears of it with its first observation."""
        return RemoteEpisode(episode_id, seed)

    def predict(self, observation: object, episode: RemoteEpisode) -> object:
        """Return the action for one observation.

        Raises:
            ModelException: the model raised; its traceback comes along.
            InvalidObservationError: the observation is none of the space.
            CallTimeout: the model did not answer in time.
            SessionClosed: the server is gone, or was in this episode.
        """
        if episode.queue or self._horizon > 1 or self._sent:
            return self._next([observation], [episode])[0]
        codecs, lane = self._ready([episode])
        leaves = codecs.encode(observation)
        episode.predicted_now = True
        try:
            name = lane.send_predict(leaves, (Row(episode.episode_id, episode.seed),))
            frames, episode.timing = lane.take_actions(name)
        except (ModelFaultReceived, Error) as error:
            self._fail(error, "predict", episode)
        episode.predict_index += 1
        if len(frames) > 1:
            episode.queue.extend(codecs.decode(frame) for frame in frames[1:])
        return codecs.decode(frames[0])

    def predict_batch(self, observation: object, episodes: Sequence[RemoteEpisode]) -> object:
        """Return the batched action for a batched observation, one row for each open episode.

        Raises:
            Error: as `predict`.
        """
        codecs, lanes = self._bound(), len(episodes)
        enough = self._lead + 2 if self._lead else 1
        if all(len(episode.queue) >= enough for episode in episodes):
            return codecs.join_actions(self._next([None] * lanes, episodes))
        plain = self._horizon == 1 and not self._sent and not any(one.queue for one in episodes)
        if not plain or not self._keeps_rows_apart:
            values = codecs.split(observation, lanes)
            return codecs.join_actions(self._next(values, episodes))
        _, lane = self._ready(episodes)
        leaves = codecs.encode_many(observation, lanes)
        try:
            name = lane.send_predict(leaves, _rows(episodes))
            frames, timing = lane.take_actions(name)
        except (ModelFaultReceived, Error) as error:
            self._fail(error, "predict", episodes[0])
        for episode in episodes:
            episode.timing = timing
            episode.predict_index += 1
        if len(frames) > 1:
            self._keep(codecs, frames[1:], episodes)
        return codecs.decode_many(frames[0], lanes)

    def predict_each(
        self, observations: Sequence[object], episodes: Sequence[RemoteEpisode]
    ) -> list[object]:
        """Return the actions for single observations, by one request where the server can.

        Raises:
            Error: as `predict`.
        """
        return self._next(observations, episodes)

    def end(self, episode: RemoteEpisode) -> None:
        """Close an episode; the model is told where it was asked in it.

        Raises:
            ModelException: the model failed at the end of the episode.
        """
        episode.queue.clear()
        lane, episode.lane = episode.lane, None
        try:
            while episode.coming and lane is self._lane and lane is not None and lane.is_open:
                self._take_next()
            episode.queue.clear()
            if lane is not None and lane is self._lane and lane.is_open:
                while self._sent:  # answers come in order
                    self._take_next()
                lane.reset((episode.episode_id,))
        except ModelFaultReceived as error:
            raise model_error_of(error.fault, self._asked("reset", episode)) from error
        except Error as error:
            # The episode is over all the same, and whatever is asked next tells of the connection.
            log.warning("the model at %s was not told of an episode's end: %s", self.address, error)

    def interrupt(self) -> None:
        """Have a question that another thread waits with fail at once.

        The next episode asks anew.
        """
        lane = self._lane
        if lane is not None:
            lane.close()

    def close(self) -> None:
        """Leave, within a second; the server goes on."""
        if self._closed:
            return
        self._closed = True
        self._hang_up()
        self._link.close()

    def split_actions(self, actions: object, lanes: int) -> list[Any]:
        """Return each lane's action of a batched one."""
        return self._bound().split_actions(actions, lanes)

    def __repr__(self) -> str:
        return f"RemotePolicy({self.name!r}, address={self.address!r})"

    def _next(
        self, observations: Sequence[object], episodes: Sequence[RemoteEpisode]
    ) -> list[object]:
        """Return the next action of each episode; ask where none is left, and where few will be."""
        empty = [at for at, one in enumerate(episodes) if not one.queue and not one.coming]
        for episode in episodes:
            episode.predicted_now = not episode.queue
        if empty:
            self._ask([observations[at] for at in empty], [episodes[at] for at in empty])
        for episode in episodes:
            while not episode.queue:
                episode.raise_error()
                self._take_next()
        actions = [episode.queue.popleft() for episode in episodes]
        if self._lead:
            low = [
                at
                for at, one in enumerate(episodes)
                if not one.coming and len(one.queue) <= self._lead
            ]
            if low:
                self._ask([observations[at] for at in low], [episodes[at] for at in low])
        return actions

    def _ask(self, observations: Sequence[object], episodes: Sequence[RemoteEpisode]) -> None:
        codecs, lane = self._ready(episodes)
        groups = [episodes] if self._keeps_rows_apart else [[one] for one in episodes]
        start = 0
        try:
            for group in groups:
                part = list(observations[start : start + len(group)])
                start += len(group)
                if len(group) == 1:
                    leaves: Leaves = codecs.encode(part[0])
                else:
                    leaves = codecs.encode_many(part, len(group))
                self._sent.append((lane.send_predict(leaves, _rows(group)), group))
                for episode in group:
                    episode.coming = True
                    episode.predict_index += 1
        except Error as error:
            self._fail(error, "predict", episodes[0])

    def _take_next(self) -> None:
        """Wait for the next answer, and give it to the episodes that it is for."""
        codecs, lane = self._bound(), self._lane
        if not self._sent or lane is None:
            raise self._lost()
        name, episodes = self._sent.popleft()
        try:
            frames, timing = lane.take_actions(name)
        except ModelFaultReceived as error:
            for episode in episodes:
                episode.coming = False
                episode.error = model_error_of(error.fault, self._asked("predict", episode))
            return
        except Error as error:
            self._fail(error, "predict", episodes[0])
        for episode in episodes:
            episode.coming, episode.timing = False, timing
        self._keep(codecs, frames, episodes)

    def _keep(
        self, codecs: ModelCodecs, frames: Sequence[Leaves], episodes: Sequence[RemoteEpisode]
    ) -> None:
        lanes = len(episodes)
        for frame in frames:
            if lanes == 1:
                episodes[0].queue.append(codecs.decode(frame))
                continue
            batch = codecs.decode_many(frame, lanes)
            for episode, action in zip(episodes, codecs.split_actions(batch, lanes), strict=True):
                episode.queue.append(action)

    def _ready(self, episodes: Sequence[RemoteEpisode]) -> tuple[ModelCodecs, ModelLane]:
        """Return what to ask with; the stream is opened again for episodes that begin."""
        codecs, lane = self._bound(), self._lane
        if lane is None or not lane.is_open:
            if any(episode.lane is not None for episode in episodes):
                raise self._lost()
            self._sent.clear()
            lane = self._lane = self._opened(codecs)
        for episode in episodes:
            if episode.lane is None:
                episode.lane = lane
            elif episode.lane is not lane:
                raise self._lost()
        return codecs, lane

    def _opened(self, codecs: ModelCodecs) -> ModelLane:
        try:
            lane = self._link.lane()
            lane.resolve(
                codecs.contract,
                edition=self._link.answering.edition,
                horizon=self._horizon,
                instruction=self._instruction,
            )
        except (ModelFaultReceived, Error) as error:
            self._fail(error, "resolve", None)
        return lane

    def _bound(self) -> ModelCodecs:
        if self._closed:
            raise SessionClosed(
                f"the session with the model at {self.address} is closed", address=self.address
            )
        if self._codecs is None:
            raise ConfigurationError("the policy is bound to no environment", hint="Call bind().")
        return self._codecs

    def _hang_up(self) -> None:
        lane, self._lane = self._lane, None
        self._sent.clear()
        if lane is None or not lane.is_open:
            return
        try:
            lane.say_goodbye("the session is complete", GOODBYE_SECONDS)
        except (ModelFaultReceived, Error) as error:
            # Its stream ends now, and with it all that the server keeps.
            log.debug("the model at %s did not answer the goodbye: %s", self.address, error)

    def _lost(self) -> SessionClosed:
        return SessionClosed(
            f"the model {self.name!r} at {self.address} was lost in this episode, and with it "
            "what it knew of it",
            address=self.address,
            hint=AGAIN,
        )

    def _fail(
        self, error: ModelFaultReceived | Error, operation: str, episode: RemoteEpisode | None
    ) -> NoReturn:
        if isinstance(error, ModelFaultReceived):
            raise model_error_of(error.fault, self._asked(operation, episode)) from error
        raise hinted(error, address=self.address)

    def _asked(self, operation: str, episode: RemoteEpisode | None) -> Asked:
        return Asked(
            operation,
            self.name,
            self.address,
            None if self._codecs is None else self._codecs.contract.id,
            None if episode is None else episode.episode_id,
            None if episode is None else episode.seed,
        )

    def _check_options(self) -> None:
        answering = self._link.answering
        if self._instruction is not None and not answering.welcome.offers(INSTRUCTION):
            raise UnsupportedError(
                f"the model server at {self.address} takes no instruction: it is not of this "
                "project",
                hint="Leave it out.",
            )
        longest = min(answering.native_chunk or LONGEST_HORIZON, LONGEST_HORIZON)
        if not 1 <= self._horizon <= longest:
            raise ConfigurationError(
                f"execution_horizon is {self._horizon}; of the model {self.name!r} it can be "
                f"1 to {longest}"
            )


def _rows(episodes: Sequence[RemoteEpisode]) -> tuple[Row, ...]:
    return tuple([Row(episode.episode_id, episode.seed) for episode in episodes])
