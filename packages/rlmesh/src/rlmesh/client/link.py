"""A client's side of one environment: its values, and its episode."""

from __future__ import annotations

from collections.abc import Mapping

from rlcore import Error, InvalidActionError, InvalidValueError, ProtocolException
from rlcore.log import logger

from rlmesh.client.ahead import Ahead, is_under_way
from rlmesh.client.dialling import Destination
from rlmesh.client.reconnect import Patience
from rlmesh.client.session_link import SessionLink
from rlmesh.client.strict_dtypes import strictly
from rlmesh.codec import Backend, compile_codec
from rlmesh.protocol.identifiers import time_ordered_id
from rlmesh.protocol.messages import Leaves, StepReply

log = logger("rlmesh", "client")
Outcome = tuple[object, float, bool, bool, dict[str, object]]


class EnvLink(SessionLink):
    """Drives one served environment, with values as one backend has them.

    After a failure that ended its session, `reset` opens another.
    """

    def __init__(
        self,
        destination: Destination,
        backend: Backend,
        *,
        patience: Patience,
        strict_dtypes: bool = False,
        num_envs: int = 0,
    ) -> None:
        super().__init__(destination, patience=patience, num_envs=num_envs)
        contract = self.contract
        encode = compile_codec(contract.action_space, backend=backend, strict_nan=True).encode
        self._encode = strictly(contract.action_space, encode) if strict_dtypes else encode
        self._observations = compile_codec(contract.observation_space, backend=backend)
        self._decode = self._observations.decode

    def reset(
        self, seed: int | None, options: Mapping[str, object] | None
    ) -> tuple[object, dict[str, object]]:
        """Start an episode, in a new session if the last one has ended."""
        if self._ahead is not None:
            self._forget_ahead(self._ahead)
        self._seed, self.episode_id = seed, time_ordered_id()
        seeds = () if seed is None else (seed,)
        reply = self.ask_reset(seeds, options, (), (self.episode_id,))
        return self._decoded(reply.leaves), reply.info

    def step(self, action: object) -> Outcome:
        """Take a step."""
        self.require_running()
        if self._ahead is not None:
            reply = self._end_step(self._ahead, action)
        else:
            self.last_action = action
            try:
                leaves = self._encode(action)
            except InvalidValueError as error:
                raise InvalidActionError(error.message, path=error.path, hint=error.hint) from error
            reply = self.ask_step(leaves, 1, (), (self.episode_id,))
        info = reply.info
        if reply.completed:
            info.setdefault("completed_episodes", 1)
        return (
            self._decoded(reply.leaves),
            reply.rewards[0],
            reply.terminated != b"\0",
            reply.truncated != b"\0",
            info,
        )

    def begin_step(self, action: object) -> None:
        """Send the action of the next step, which waits for the answer."""
        self.require_running()
        if self._ahead is not None:
            raise is_under_way("begin_step")
        self.last_action = action
        self.send_ahead(Ahead(action, self._sendable(action), 0, 1, (), (self.episode_id,)))

    def _sendable(self, action: object) -> Leaves:
        try:
            return [bytes(leaf) for leaf in self._encode(action)]
        except InvalidValueError as error:
            raise InvalidActionError(error.message, path=error.path, hint=error.hint) from error

    def _end_step(self, ahead: Ahead, action: object) -> StepReply:
        if action is not ahead.action:
            ahead.require(self._sendable(action))
        return self.receive_ahead(ahead)

    def _forget_ahead(self, ahead: Ahead) -> None:
        """Wait for the answer to a step that nobody wants any more."""
        try:
            self._end_step(ahead, ahead.action)
        except Error as error:
            log.warning("a step that was given up for a reset had failed: %s", error)

    def _decoded(self, leaves: Leaves) -> object:
        try:
            lane = self.wires.lane
            if lane is not None and lane.owns_memory:
                return self._observations.decode_owned(leaves)
            return self._decode(leaves)
        except InvalidValueError as error:
            raise ProtocolException(
                f"the observation from {self.identity.name!r} does not fit its space: {error}"
            ) from error
