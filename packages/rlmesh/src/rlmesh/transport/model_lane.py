"""One client's stream to a served model, for one route."""

from __future__ import annotations

from collections.abc import Sequence

from rlmesh.protocol.identifiers import time_ordered_id
from rlmesh.protocol.model_requests import Leaves, Name, Resolved, Row, Timing
from rlmesh.specs import EnvContract
from rlmesh.transport import model_client_wire as wire
from rlmesh.transport.grpc_stream import GrpcStream


class ModelLane:
    """Asks a served model about one environment; one question at a time, but for `send_predict`.

    All of its methods raise what went wrong on the way, after which it is over; and
    `ModelFaultReceived` for what the server says went wrong with the request.
    """

    def __init__(self, stream: GrpcStream) -> None:
        self._stream = stream
        self._session_id = f"remote-model-{time_ordered_id()}"
        self._env_id = time_ordered_id()
        self._count = 0

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self._stream.is_open

    def resolve(
        self, contract: EnvContract, *, edition: str, horizon: int, instruction: str | None
    ) -> Resolved:
        """Open the route."""
        name = self._name("resolve_adapter")
        request = wire.write_resolve(
            name, contract, edition=edition, horizon=horizon, instruction=instruction
        )
        return wire.read_resolved(self._stream.exchange(request, "resolve"), name.request_id)

    def send_predict(self, leaves: Leaves, rows: Sequence[Row]) -> str:
        """Ask for actions without waiting for them; return the name of the question."""
        name = self._next("predict")
        self._stream.send(wire.write_predict(name, leaves, rows), "predict")
        return name.request_id

    def take_actions(self, request_id: str) -> tuple[list[Leaves], Timing]:
        """Wait for the actions that were asked for; questions are answered in their order."""
        return wire.read_actions(self._stream.next_reply("predict"), request_id)

    def reset(self, episode_ids: Sequence[str]) -> None:
        """Tell that episodes are over."""
        name = self._next("reset_adapter")
        request = wire.write_reset(name, episode_ids)
        wire.read_reset(self._stream.exchange(request, "reset"), name.request_id)

    def say_goodbye(self, reason: str, seconds: float) -> None:
        """Give the route back and end the stream, waiting no longer than `seconds`."""
        impatience = self._stream.hurry(seconds)
        name = self._name("release_adapter")
        try:
            request = wire.write_release(name, reason)
            wire.read_released(self._stream.exchange(request, "release"), name.request_id)
        finally:
            impatience.cancel()
            self._stream.close()

    def close(self) -> None:
        """Hang up without a word."""
        self._stream.close()

    def _next(self, kind: str) -> Name:
        self._count += 1
        return self._name(f"{kind}:{self._count}")

    def _name(self, what: str) -> Name:
        return Name(self._session_id, self._env_id, f"{self._env_id}:{what}")
