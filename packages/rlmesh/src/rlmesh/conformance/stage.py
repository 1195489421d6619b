"""Calls on an environment: each is announced to its keeper, and fails under its own name."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from rlcore import CallTimeout, Error

from rlmesh.conformance.keeper import Hung, Pulse
from rlmesh.conformance.subject import Env
from rlmesh.protocol.faults import text_of

T = TypeVar("T")

_NOT_GIVEN: Final = object()
_REMOTE_LINE: Final = re.compile(r'^ +File "(.+)", line (\d+), in ', re.MULTILINE)
_SERVER: Final = re.compile(
    r"[/\\]rlmesh[/\\](server|protocol|codec|spaces|backends|transport)[/\\]"
)
OURS: Final = ("rlmesh/conformance/", "rlmesh\\conformance\\")


class Raised(Exception):
    """A call on an environment raised.

    Attributes:
        what: the call.
        error: what it raised.
    """

    def __init__(self, what: str, error: BaseException) -> None:
        super().__init__(f"{what} raised {type(error).__name__}: {text_of(error)}{_line_of(error)}")
        self.what = what
        self.error = error


class Stage:
    """An environment in the hands of its keeper's thread.

    Every method may raise `Raised`, or `Hung` where a client gave up on its server.
    """

    def __init__(self, env: Env, pulse: Pulse) -> None:
        self.env = env
        self._pulse = pulse

    def reset(self, seed: object = _NOT_GIVEN, options: object = _NOT_GIVEN) -> Any:
        """Return what `reset` returns, called with what is given here."""
        arguments = {"seed": seed, "options": options}
        given = {name: value for name, value in arguments.items() if value is not _NOT_GIVEN}
        what = f"reset({', '.join(f'{name}={value!r}' for name, value in given.items())})"
        return self.call(what, lambda: self.env.reset(**given))

    def step(self, action: object, what: str) -> Any:  # Any, here and above: it is to be judged
        """Return what `step` returns."""
        return self.call(what, lambda: self.env.step(action))

    def call(self, what: str, function: Callable[[], T]) -> T:
        """Return what a function returns, announced as `what`."""
        self._pulse.beat(what)
        try:
            return function()
        except CallTimeout as error:
            raise Hung(what, error.seconds or 0.0) from error
        except BaseException as error:  # nothing interrupts this thread but the environment
            raise Raised(what, error) from error


def _line_of(error: BaseException) -> str:
    """Return where in the environment it was raised, for the one who has to mend it."""
    if isinstance(error, Error):  # what stands for a failure elsewhere was raised by us
        there = _REMOTE_LINE.findall(getattr(error, "remote_traceback", None) or "")
        outer = [(file, line) for file, line in there if not _SERVER.search(file)]
        return f" ({outer[-1][0]}:{outer[-1][1]})" if outer else ""
    frames = traceback.extract_tb(cast("Exception", error).__traceback__)
    outside = [frame for frame in frames if not any(part in frame.filename for part in OURS)]
    return f" ({outside[-1].filename}:{outside[-1].lineno})" if outside else ""
