# ruff: noqa: D102, T201, TID251 - a script that prints its figures
"""What a run costs beside the loop that it replaces: python packages/rlmesh/benchmarks/runs.py."""

import os
import time
from collections.abc import Callable
from typing import Any

# Threads of a matrix library that wait for one another measure the machine, not a run.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import gymnasium as gym
import numpy as np
import rlmesh
import rlmesh.numpy
from gymnasium.vector import SyncVectorEnv
from rlmesh import EnvServer

STEPS = 20_000
LANES = 16
SLOW_SECONDS = 0.002

Seconds = float


class Point(gym.Env[Any, Any]):
    """Four floats, two actions, and nothing to compute."""

    metadata = {"render_modes": []}  # noqa: RUF012 - gymnasium's own declaration
    observation_space = gym.spaces.Box(-1.0, 1.0, (4,), np.float32)
    action_space = gym.spaces.Discrete(2)
    seconds = 0.0
    length = 1000

    def __init__(self) -> None:
        self._observation = np.zeros(4, np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self._left = self.length
        return self._observation, {}

    def step(self, action: Any) -> Any:
        if self.seconds:
            time.sleep(self.seconds)
        self._left -= 1
        return self._observation, 1.0, self._left == 0, False, {}


class SlowPoint(Point):
    """The same, two milliseconds a step."""

    seconds = SLOW_SECONDS
    length = 100


class Net(rlmesh.numpy.Model):
    """A small network, which is quicker for many at once than for one after another."""

    def load(self) -> None:
        generator = np.random.default_rng(0)
        self._first = generator.standard_normal((4, 256)).astype(np.float32)
        self._second = generator.standard_normal((256, 256)).astype(np.float32)
        self._last = generator.standard_normal((256, 2)).astype(np.float32)

    def predict_batch(self, observations: Any) -> Any:
        hidden = np.tanh(np.tanh(observations @ self._first) @ self._second)
        return (hidden @ self._last).argmax(1)


TRIVIAL = rlmesh.numpy.Model(lambda observation: 1)


def by_hand(env: Any, predict: Callable[[Any], Any], episodes: int) -> None:
    """Play as everybody would write it."""
    for seed in range(episodes):
        observation, _ = env.reset(seed=seed)
        done = False
        while not done:
            observation, _, terminated, truncated, _ = env.step(predict(observation))
            done = terminated or truncated


def took(
    function: Callable[[], object], times: int = 5, clock: Callable[[], float] = time.perf_counter
) -> Seconds:
    """The best of several: what is else on the machine only ever adds to it."""
    found: list[float] = []
    for _ in range(times):
        started = clock()
        function()
        found.append(clock() - started)
    return min(found)


def in_process() -> None:
    """Overhead per step, against a loop written by hand."""
    episodes = STEPS // Point.length
    env, cpu = Point(), time.process_time
    hand = took(lambda: by_hand(env, lambda observation: 1, episodes), clock=cpu)
    run = took(lambda: rlmesh.run(TRIVIAL, env, episodes=episodes), clock=cpu)
    bounded = took(lambda: rlmesh.run(TRIVIAL, env, episodes=episodes, step_timeout_seconds=60))
    per_step = [(seconds - hand) / STEPS * 1e6 for seconds in (run, bounded)]
    alone = hand / STEPS * 1e6
    print(f"in process: {alone:.2f} us a step by hand, {per_step[0]:.2f} us more in a run")
    print(f"            {per_step[1]:.2f} us more with step_timeout_seconds")


def remote() -> None:
    """Overhead of a run through the local lane, against the same loop over a RemoteEnv."""
    episodes = STEPS // Point.length // 2
    hands: list[float] = []
    runs: list[float] = []
    with EnvServer(Point) as server, rlmesh.numpy.RemoteEnv(server.address) as handle:
        for _ in range(15):  # in turns, as the machine is not always as quick
            hands.append(took(lambda: by_hand(handle, lambda observation: 1, episodes), 1))
            runs.append(took(lambda: rlmesh.run(TRIVIAL, handle, episodes=episodes), 1))
    hand, run = min(hands), min(runs)
    steps = episodes * Point.length
    print(
        f"local lane: {hand / steps * 1e6:.1f} us a step by hand, {run / steps * 1e6:.1f} us "
        f"in a run: {100 * (run / hand - 1):+.1f} %"
    )


def lanes() -> None:
    """One run on 16 lanes against 16 runs, one after another."""
    model, env = Net(), Point()
    many = SyncVectorEnv([Point] * LANES)
    alone = took(lambda: [rlmesh.run(model, env, seeds=[seed]) for seed in range(LANES)], 3)
    batched = took(lambda: rlmesh.run(model, many, seeds=range(LANES)), 3)
    times = alone / batched
    print(f"16 lanes: {alone:.2f} s one after another, {batched:.2f} s batched: {times:.1f}x")


def workers() -> None:
    """Two processes against one, on an environment that takes 2 ms a step."""
    from rlmesh.server.sources import load_factory

    factory = load_factory("runs:SlowPoint")
    one = rlmesh.run(TRIVIAL, SlowPoint(), episodes=20)
    started = time.perf_counter()
    two = rlmesh.run(TRIVIAL, factory, episodes=60, num_workers=2)
    wall = time.perf_counter() - started
    # Starting the processes is told apart; the pace is that of the median step once they play.
    pace = [row.p50 for run in (one, two) for row in run.telemetry if row.op == "runner.round"]
    print(
        f"workers: {pace[0]:.2f} ms a step on one, {pace[1]:.2f} ms on each of two: "
        f"{2 * pace[0] / pace[1]:.2f}x; 60 episodes of 100 steps took {wall:.1f} s with the start "
        f"of two processes, {60 * 100 * pace[0] / 1000:.1f} s on one environment here"
    )


if __name__ == "__main__":
    in_process()
    remote()
    lanes()
    workers()
