"""Sessions that are stepped side by side: in one call where one message steps them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from rleaas.training.guarded import GuardedEnv, Outcome
from rleaas.training.learner_spaces import to_environments

if TYPE_CHECKING:
    from rlmesh.numpy import RemoteEnvs

# Actions are whatever the environment's spaces say.
Value = Any
Rows = Sequence[Value] | NDArray[Any]


def begin_all(sessions: Sequence[GuardedEnv], actions: Rows) -> None:
    """Send each session's next action ahead, where that works."""
    several, places = _together(sessions)
    if several is not None:
        given = to_environments(sessions[0].given_actions, actions)
        if several.begin_all(places, given):
            for session, action in zip(sessions, given, strict=True):
                session.sent(action)
            return
    for session, action in zip(sessions, actions, strict=True):
        if session.begins:
            session.begin(action)


def step_all(sessions: Sequence[GuardedEnv], actions: Rows) -> Iterable[Outcome]:
    """Step each session, in turn; what one raises is raised where it is asked for its outcome.

    A session whose outcome was given may be reset before the next is asked for.
    """
    several, places = _together(sessions)
    if several is None:
        told: list[Outcome | None] = [None] * len(sessions)
    else:
        told = several.step_all(places)
    for session, action, outcome in zip(sessions, actions, told, strict=True):
        yield session.step(action) if outcome is None else session.took(outcome)


def _together(sessions: Sequence[GuardedEnv]) -> tuple[RemoteEnvs | None, list[int]]:
    """The session of the server that all of them share, and their places in it."""
    found = [place for session in sessions if (place := session.place) is not None]
    if len(found) < len(sessions) or not found:
        return None, []
    several = found[0][0]
    if any(one is not several for one, _ in found):
        return None, []
    return several, [place for _, place in found]
