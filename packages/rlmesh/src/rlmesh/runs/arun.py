"""`rlmesh.arun`: a run for asyncio."""

import asyncio
import threading
from collections.abc import Callable
from typing import Unpack

from rlmesh.runs.evaluation import CANCELLED, GRACE_SECONDS, Evaluation
from rlmesh.runs.results import RunResult
from rlmesh.runs.run import play
from rlmesh.runs.settings import RunArguments

HURRY_SECONDS = 0.5
"""How long calls may take to end by themselves before those that wait for a server are given up."""


async def arun(model: object, env: object, **arguments: Unpack[RunArguments]) -> RunResult:
    """Do what `rlmesh.run` does, without holding up the event loop of asyncio.

    The run has a thread of its own, on which the model, the environment, hooks and callbacks are
    called. When the task is cancelled, the run ends after the step that it is in, closes what it
    opened, and then `CancelledError` is raised, whose `partial` holds the valid result so far. A
    call that does not return is left alone after three seconds.

    Args:
        model: as `rlmesh.run` takes it.
        env: as `rlmesh.run` takes it.
        **arguments: those of `rlmesh.run`.

    Raises:
        asyncio.CancelledError: the task was cancelled.
        Exception: as `rlmesh.run`.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    thread = _RunThread(model, env, arguments, lambda: _settle(loop, ended))
    thread.start()
    try:
        await asyncio.shield(ended)
    except asyncio.CancelledError as cancelled:
        thread.cancel()
        if not await _until(ended, HURRY_SECONDS):
            thread.hang_up()
            # The run itself waits for its environments, and then says what became of them.
            await _until(ended, GRACE_SECONDS + HURRY_SECONDS)
        cancelled.__dict__["partial"] = thread.so_far()
        if thread.error is not None:
            raise cancelled from thread.error
        raise
    if thread.error is not None:
        raise thread.error
    assert thread.result is not None
    return thread.result


class _RunThread(threading.Thread):
    """A thread with a run in it, and what became of that."""

    def __init__(
        self, model: object, env: object, arguments: RunArguments, ended: Callable[[], None]
    ) -> None:
        super().__init__(name="rlmesh-arun", daemon=True)
        self.result: RunResult | None = None
        self.error: BaseException | None = None
        self._given = (model, env, arguments)
        self._ended = ended
        self._evaluation: Evaluation | None = None
        self._cancelled = False

    def run(self) -> None:
        """Play."""
        try:
            self.result = play(*self._given, begun=self._begun)
        except BaseException as error:
            self.error = error
        finally:
            self._ended()

    def cancel(self) -> None:
        """Have the run end soon."""
        self._cancelled = True
        if self._evaluation is not None:
            self._evaluation.cancel()

    def hang_up(self) -> None:
        """Have a call that waits for a server fail."""
        if self._evaluation is not None:
            self._evaluation.hang_up()

    def so_far(self) -> RunResult | None:
        """Return what the run left, or what it has where it still hangs."""
        if self.result is not None:
            return self.result
        partial: object = getattr(self.error, "partial", None)
        if isinstance(partial, RunResult):
            return partial
        return None if self._evaluation is None else self._evaluation.so_far(CANCELLED)

    def _begun(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation
        if self._cancelled:
            evaluation.cancel()


async def _until(ended: asyncio.Future[None], seconds: float) -> bool:
    """Wait for the run, also where the task is cancelled once more; tell whether it has ended."""
    until = asyncio.get_running_loop().time() + seconds
    while not ended.done() and (left := until - asyncio.get_running_loop().time()) > 0:
        try:
            await asyncio.wait({ended}, timeout=left)
        except asyncio.CancelledError:
            continue
    return ended.done()


def _settle(loop: asyncio.AbstractEventLoop, ended: asyncio.Future[None]) -> None:
    def settle() -> None:
        if not ended.done():
            ended.set_result(None)

    if loop.is_closed():  # nobody waits for a call that hung for so long
        return
    loop.call_soon_threadsafe(settle)
