"""The curriculum of a training's sessions, as the trainers of our own see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from rleaas.training.trainer import SessionFactory

if TYPE_CHECKING:
    from rleaas.training.curriculum import Curriculum
    from rleaas.training.session_parts import SessionParts


class Tiers:
    """Which tier the next episodes are of, over restarts and in every process; None without one.

    That a tier was mastered is told by the sink.
    """

    def __init__(self, make_env: SessionFactory) -> None:
        # A plain factory, as that of a local environment, has no parts.
        self._parts = cast("SessionParts | None", getattr(make_env, "parts", None))

    def share(self) -> None:
        """Let processes that are started from here on count for the same curriculum."""
        if self._parts is not None:
            self._parts.share()

    @property
    def now(self) -> int | None:
        """The tier of an episode that starts now."""
        curriculum = self._curriculum()
        return None if curriculum is None else curriculum.tier

    def state(self) -> list[float] | None:
        """Where the curriculum stands, for a restart of the job."""
        curriculum = self._curriculum()
        return None if curriculum is None else curriculum.get_state()

    def restore(self, state: object) -> None:
        """Go on from there."""
        curriculum = self._curriculum()
        if curriculum is not None and state is not None:
            curriculum.set_state(cast("Sequence[float]", state))

    def _curriculum(self) -> Curriculum | None:
        return None if self._parts is None else self._parts.curriculum
