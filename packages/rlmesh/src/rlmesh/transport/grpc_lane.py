"""A session over gRPC: one ordered exchange of requests and replies over one stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import grpc

from rlmesh.protocol.messages import Leaves, Rendering, ResetReply, StepReply
from rlmesh.protocol.opening import Opening, lease_told
from rlmesh.transport import client_wire
from rlmesh.transport.addresses import Address
from rlmesh.transport.failures import AGAIN
from rlmesh.transport.grpc_stream import GrpcStream
from rlmesh.transport.step_bytes import step_tail, write_step


class GrpcLane:
    """Sends a request and waits for its reply, one at a time; see `Lane`.

    A lane that failed or timed out is over, so that the late reply of an abandoned request is never
    taken for the answer to the next one.
    """

    def __init__(
        self,
        method: grpc.StreamStreamMultiCallable[bytes, bytes],
        *,
        metadata: tuple[tuple[str, str], ...],
        address: Address,
        timeout: float | None,
        message_limit: int,
        opening: Opening | None = None,
        told: Callable[[int], None] | None = None,
    ) -> None:
        self._opening = opening or Opening()
        self._told = told
        self._stream = GrpcStream(
            method,
            metadata=metadata + (() if opening is None else opening.headers()),
            address=address,
            timeout=timeout,
            message_limit=message_limit,
            again=AGAIN,
        )
        self._exchange = self._stream.exchange
        self.owns_memory = False
        self.lease_seconds = 0.0

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self._stream.is_open

    def configure(self, number: int, edition: str) -> None:
        """Wait for the session's turn and pin the workflow edition."""
        name, doing = str(number), "opening a session"
        reply = self._exchange(client_wire.write_configure(name, edition), doing)
        while (position := client_wire.read_notice(reply)) is not None:
            if self._told is not None:
                self._told(position)
            reply = self._stream.next_reply(doing)
        client_wire.read_configured(reply, name)
        # They came before the first reply, so that nothing is waited for here.
        self.lease_seconds = lease_told(self._stream.headers())

    def be_patient(self, seconds: float | None) -> None:
        """Set how long each reply may take from now on."""
        self._stream.be_patient(seconds)

    def resume(self) -> None:
        """Do nothing: whether the server has the session shows in its first reply."""

    def reset(
        self,
        number: int,
        *,
        seeds: Sequence[int | None],
        options: Mapping[str, object] | None,
        tensors: bool,
        timeout_ms: int,
        lanes: tuple[int, ...],
        episode_ids: tuple[str, ...],
    ) -> ResetReply:
        """Start episodes."""
        name = str(number)
        request = client_wire.write_reset(
            name,
            seeds=seeds,
            options=options,
            tensors=tensors,
            timeout_ms=timeout_ms,
            lanes=lanes,
            episode_ids=episode_ids,
        )
        return client_wire.read_reset(self._exchange(request, "reset"), name)

    def step(
        self,
        number: int,
        leaves: Leaves,
        count: int,
        timeout_ms: int,
        lanes: tuple[int, ...],
        episode_ids: tuple[str, ...],
    ) -> StepReply:
        """Step `count` environments."""
        name = str(number)
        request = write_step(name, leaves, step_tail(timeout_ms, lanes, episode_ids))
        return client_wire.read_step(self._exchange(request, "step"), name, count)

    def begin_step(
        self,
        number: int,
        leaves: Leaves,
        count: int,
        timeout_ms: int,
        lanes: tuple[int, ...],
        episode_ids: tuple[str, ...],
    ) -> None:
        """Send a step without waiting for its answer."""
        request = write_step(str(number), leaves, step_tail(timeout_ms, lanes, episode_ids))
        self._stream.send(request, "step")

    def end_step(self, number: int, count: int) -> StepReply:
        """Wait for the answer to the step that was begun."""
        return client_wire.read_step(self._stream.next_reply("step"), str(number), count)

    def render(self, number: int, lane: int, *, timeout_ms: int) -> Rendering:
        """Return what a lane's environment draws."""
        name = str(number)
        request = client_wire.write_render(name, lane, timeout_ms=timeout_ms)
        return client_wire.read_render(self._exchange(request, "render"), name)

    def say_goodbye(self, number: int, reason: str, seconds: float) -> None:
        """End the session in good order."""
        impatience = self._stream.hurry(seconds)
        name = str(number)
        try:
            reply = self._exchange(client_wire.write_close(name, reason), "close")
            client_wire.read_closed(reply, name)
        finally:
            impatience.cancel()
            self.close()

    def close(self) -> None:
        """End the session's stream; an unanswered request is abandoned."""
        self._stream.close()
