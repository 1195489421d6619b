"""Verifiers that are functions of somebody's Python source, as workers run them."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any, cast

from rlcore import GraderError

from rleaas.training.rewards.call_limit import CallLimit, CallOverdue
from rleaas.training.rewards.function import CALL_SECONDS, IMPORT_SECONDS
from rleaas.verify.function import FunctionVerifier, told
from rleaas.verify.means import FunctionSource
from rleaas.verify.trajectory import Trajectory

# What a function of somebody's gives back is looked at where it arrives.
Value = Any


def load(source: FunctionSource) -> FunctionVerifier:
    """The verifier of a source, which is run now; each call of it may take a second.

    Raises:
        GraderError: the source failed.
    """
    name = f"<verifier {source.verifier or source.function}>"
    linecache.cache[name] = (
        len(source.source),
        None,
        source.source.splitlines(keepends=True),
        name,
    )
    namespace: dict[str, Value] = {"__name__": "verifier", "__file__": name}
    limited(
        source.verifier,
        IMPORT_SECONDS,
        # Its author wrote it, and the operator allowed code in workers.
        lambda: exec(compile(source.source, name, "exec"), namespace),
    )
    found = namespace.get(source.function)
    if not callable(found):
        raise GraderError(
            source.verifier, "exception", f"{source.function!r} is no function any more"
        )
    function = cast("Callable[[Trajectory], Value]", found)

    def call(trajectory: Trajectory) -> Value:
        return limited(source.verifier, CALL_SECONDS, lambda: function(trajectory))

    return FunctionVerifier(
        function=call,
        name=source.function,
        threshold=source.threshold,
        policy=source.policy,
        verifier=source.verifier,
        version=source.version,
    )


def limited(verifier: str, seconds: float, work: Callable[[], Value]) -> Value:
    """What the work gives, within so many seconds.

    Raises:
        GraderError: it failed, or took too long.
    """
    try:
        return CallLimit(seconds).run(work)
    except CallOverdue as error:
        raise GraderError(
            verifier, "timeout", f"its function did not return within {seconds:g} s"
        ) from error
    except (KeyboardInterrupt, GraderError):
        raise  # the job's own stop
    except BaseException as error:
        # An exit is no end of the job that its author could have meant.
        raise GraderError(verifier, "exception", told(error)) from error
