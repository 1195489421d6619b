"""Runs for asyncio."""

import asyncio
import threading
from typing import Any

import pytest
import rlmesh
import rlmesh.numpy
from rlmesh import RunResult

RIGHT = rlmesh.numpy.Model(lambda observation: 1)


def test_a_run_is_awaited_while_other_tasks_go_on(corridor: Any) -> None:
    async def both() -> tuple[RunResult, RunResult]:
        met = threading.Barrier(2, timeout=20)

        def meet(seed: int | None, step: int) -> None:
            if step == 1:
                met.wait()

        return await asyncio.gather(
            rlmesh.arun(RIGHT, corridor(on_step=meet), episodes=3),
            rlmesh.arun(RIGHT, corridor(on_step=meet), episodes=3),
        )

    one, other = asyncio.run(both())

    assert rlmesh.run(RIGHT, corridor(), episodes=3).agrees_with(one) == ()
    assert one.agrees_with(other) == ()


def test_what_a_run_raises_comes_out_of_the_task(corridor: Any) -> None:
    with pytest.raises(rlmesh.ConfigurationError, match="retries is -1"):
        asyncio.run(rlmesh.arun(RIGHT, corridor(), retries=-1))


def test_cancelling_leaves_a_valid_partial_result_and_closes_what_was_opened(
    corridor: Any,
) -> None:
    made: list[Any] = []
    ended: list[RunResult] = []

    class Watch(rlmesh.RunHooks):
        def on_run_end(self, result: RunResult) -> None:
            ended.append(result)

    async def cancel() -> RunResult:
        reached = asyncio.Event()
        loop = asyncio.get_running_loop()
        go_on = threading.Event()

        def on_step(seed: int | None, step: int) -> None:
            if (seed, step) == (2, 2):
                loop.call_soon_threadsafe(reached.set)
                go_on.wait(20)

        def factory() -> Any:
            made.append(corridor(on_step=on_step))
            return made[-1]

        task = asyncio.create_task(rlmesh.arun(RIGHT, factory, episodes=9, hooks=Watch()))
        await reached.wait()
        task.cancel()
        loop.call_soon(go_on.set)
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        assert task.cancelled()
        partial: object = caught.value.__dict__["partial"]
        assert isinstance(partial, RunResult)
        return partial

    partial = asyncio.run(cancel())

    assert [e.outcome.value for e in partial.episodes] == ["completed", "completed", "cancelled"]
    assert partial.stopped == "cancelled"
    assert partial.coverage.asked == 9
    assert ended == [partial]
    assert [env.closed for env in made] == [1]


@pytest.mark.parametrize("number", [1, 2])
def test_cancelling_does_not_wait_long_for_what_hangs(corridor: Any, number: int) -> None:
    released = threading.Event()

    async def cancel() -> float:
        reached = asyncio.Event()
        loop = asyncio.get_running_loop()

        def hang(observation: Any) -> int:
            loop.call_soon_threadsafe(reached.set)
            released.wait(30)
            return 1

        envs = [corridor() for _ in range(number)]
        task = asyncio.create_task(rlmesh.arun(rlmesh.numpy.Model(hang), envs, episodes=9))
        await reached.wait()
        started = loop.time()
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        partial: Any = caught.value.__dict__["partial"]
        assert {episode.outcome.value for episode in partial.episodes} == {"cancelled"}
        return loop.time() - started

    try:
        assert asyncio.run(cancel()) < 5
    finally:
        released.set()
