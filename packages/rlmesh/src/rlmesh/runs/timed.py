"""Calls of an environment that may not take for ever."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from time import monotonic
from typing import Any, cast

from rlcore import CallTimeout, RLMeshException
from rlcore.log import logger

from rlmesh.runs.driven import Described
from rlmesh.runs.helper_thread import HelperThread, Until

log = logger("rlmesh", "runs")

BACK_SECONDS = 1.0
"""How long a call may be late before what it calls is given up."""

CLOSE_SECONDS = 5.0
"""How long an environment may take to close, where its other calls are bounded too."""


class Timed:
    """Bounds the calls of one environment: by a time for each, and by a moment for all of them.

    A handle that has timeouts of its own uses these. Everything else is called on a helper thread,
    always the same one, as some environments belong to the thread that made them; where one hangs,
    `is_stuck` is true and the environment has to be given up.

    Args:
        env: what is called.
        step_seconds: how long a call may take; None: no limit but `until`.
    """

    def __init__(self, env: Described, step_seconds: float | None) -> None:
        self._env = env
        self._step_seconds = step_seconds
        self.until = Until()
        own = getattr(env, "with_timeout", None)
        self._limited = (
            cast("Callable[[float], AbstractContextManager[None]]", own) if callable(own) else None
        )
        self._name = "the environment" if env.identity is None else repr(env.identity.name)
        self._helper = HelperThread(self._name)
        self.reset = self._bounded(cast("Any", env).reset)  # Any: one environment or many lanes
        self.step = self._bounded(cast("Any", env).step)

    @property
    def is_stuck(self) -> bool:
        """Whether a call never came back."""
        return self._helper.is_stuck

    def comes_back(self) -> bool:
        """Wait a moment for a call that took too long; tell whether calls can be made again."""
        return self._helper.comes_back(BACK_SECONDS)

    def close(self, close: Callable[[], None]) -> None:
        """Close the environment on the thread that it lives on; where it is stuck, when it is not.

        Args:
            close: what closes it.

        Raises:
            CallTimeout: it does not close in time.
        """
        if self.is_stuck:
            self._helper.end(lambda: self._close_late(close))
        elif self._limited is not None:
            close()
        else:
            try:
                self._helper.call(close, seconds=CLOSE_SECONDS, layer="shutdown")
            finally:
                self._helper.end()

    def _close_late(self, close: Callable[[], None]) -> None:
        try:
            close()
        except RLMeshException as error:
            log.warning("%s came back late and did not close: %s", self._name, error)

    def leave(self) -> None:
        """Let go of the environment as it is."""
        self._helper.end()

    def _bounded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        # Any: whatever the environment's own function takes and returns
        limited, helper, each = self._limited, self._helper, self._step_seconds

        def call(*args: Any, **kwargs: Any) -> Any:
            until = self.until
            limit = until
            if each is not None:
                limit = until.sooner(monotonic() + each, "environment")
            seconds = limit.seconds
            if seconds <= 0:
                raise CallTimeout(
                    f"no time is left for {function.__name__}",
                    operation=function.__name__,
                    layer=limit.layer,
                )
            if limited is None:
                if limit is not until:
                    seconds = cast("float", each)
                return helper.call(function, *args, seconds=seconds, layer=limit.layer, **kwargs)
            if seconds == float("inf"):
                return function(*args, **kwargs)
            with limited(seconds):
                return function(*args, **kwargs)

        return call
