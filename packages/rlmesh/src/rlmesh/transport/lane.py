"""What carries a session, as the client sees it: one question at a time, each with its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from rlmesh.protocol.messages import Leaves, Rendering, ResetReply, StepReply


class Lane(Protocol):
    """One session's way to its server.

    Every operation takes the number of the request, which counts up within a session. All of them
    raise what went wrong on the way (`CallTimeout`, `SessionBusy`, `SessionClosed`,
    `AccessDenied`, `ProtocolException`), after which the lane is over; and `FaultReceived` for
    what the server says went wrong with the request. A `SessionClosed` of the code
    `CONNECTION_LOST` says that only the way broke, and that the session can be taken up again.
    """

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        ...

    @property
    def lease_seconds(self) -> float:
        """How long the server keeps the session without its client; 0: not at all.

        Known once `configure` has returned.
        """
        ...

    @property
    def owns_memory(self) -> bool:
        """Whether a reply's leaves are writable and belong to the caller."""
        ...

    def configure(self, number: int, edition: str) -> None:
        """Wait for the session's turn and pin the workflow edition; its first request."""
        ...

    def be_patient(self, seconds: float | None) -> None:
        """Set how long each reply may take from now on; None: no limit."""
        ...

    def resume(self) -> None:
        """Wait until the server has taken the session up again; instead of `configure`."""
        ...

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
        """Start episodes; no lanes means all of them.

        With `tensors`, arrays in the options travel as they are: the server has said it reads them.
        """
        ...

    def step(
        self,
        number: int,
        leaves: Leaves,
        count: int,
        timeout_ms: int,
        lanes: tuple[int, ...],
        episode_ids: tuple[str, ...],
    ) -> StepReply:
        """Step `count` environments: these lanes, or all where none is named."""
        ...

    def begin_step(
        self,
        number: int,
        leaves: Leaves,
        count: int,
        timeout_ms: int,
        lanes: tuple[int, ...],
        episode_ids: tuple[str, ...],
    ) -> None:
        """Send a step as `step` does, and do not wait for its answer."""
        ...

    def end_step(self, number: int, count: int) -> StepReply:
        """Wait for the answer to the step that was begun; nothing else is asked before."""
        ...

    def render(self, number: int, lane: int, *, timeout_ms: int) -> Rendering:
        """Return what a lane's environment draws, or None when it draws nothing."""
        ...

    def say_goodbye(self, number: int, reason: str, seconds: float) -> None:
        """End the session in good order, waiting no longer than `seconds`."""
        ...

    def close(self) -> None:
        """Hang up without a word; an unanswered request is abandoned.

        The server keeps a session that can be resumed: whoever wants it to end says so.
        """
        ...
