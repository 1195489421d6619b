"""A step whose action was sent before somebody waits for its answer."""

from __future__ import annotations

from dataclasses import dataclass

from rlcore import Error, ProtocolException

from rlmesh.protocol.messages import FaultReceived, Leaves


@dataclass(slots=True)
class Ahead:
    """What is known of it.

    Attributes:
        action: as it was given.
        leaves: as it was sent, in memory of its own: it may have to be sent again.
        number: of its request.
        count: how many environments it is of.
        lanes: which they are; empty: all.
        episode_ids: the ids of their episodes.
        failure: what went wrong with sending it, which is told to whoever waits.
    """

    action: object
    leaves: Leaves
    number: int
    count: int = 1
    lanes: tuple[int, ...] = ()
    episode_ids: tuple[str, ...] = ()
    failure: FaultReceived | Error | None = None

    def require(self, leaves: Leaves) -> None:
        """Do nothing where this is what was sent.

        Raises:
            ProtocolException: it is another action.
        """
        if [bytes(leaf) for leaf in leaves] != list(self.leaves):
            raise ProtocolException(
                "step() was given another action than begin_step() before it",
                code="another_action",
                hint="Give step() the action that was sent, or call reset().",
            )


def is_under_way(operation: str) -> ProtocolException:
    """Return the error of a call that has to wait for the answer to a step."""
    return ProtocolException(
        f"{operation} while a step is under way",
        code="step_under_way",
        hint="Call step() with the action that begin_step() was given, or reset().",
    )
