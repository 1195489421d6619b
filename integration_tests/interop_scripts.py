"""What a client of one environment plays, under either rlmesh, and what it then has seen."""

# mypy knows the files of this folder under other names than a script beside them does.
# mypy: disable-error-code="import-not-found"

import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import interop_envs as envs
import numpy as np
from interop_values import Seen, known, outcome, plain, sampled, told, typed

Env = Any  # either package's client, or a local environment
Dial = Callable[..., Env]

SEEDS = (7, 11)
PATIENCE_SECONDS = 5.0


def play(dial: Dial, kind: str) -> Seen:
    """Two seeded episodes of a mirror: observations, rewards, flags, infos, a frame."""
    env, space = dial(), envs.SPACES[kind]
    script = sampled(space, envs.STEPS)
    seen: list[Seen] = []
    for seed in SEEDS:
        observation, info = env.reset(seed=seed, options={"level": [1, "two"]})
        seen.append([told(observation, space), known(info)])
        for action in script:
            observation, reward, terminated, truncated, info = env.step(action)
            seen.append([told(observation, space), reward, terminated, truncated, known(info)])
        frame = env.render()
        seen.append([list(frame.shape), str(frame.dtype), int(frame.max())])
    env.close()
    return seen


def zero_based(dial: Dial) -> Seen:
    """A step of "MultiDiscrete start" by a side that knows categories from 0 on only."""
    env = dial()
    env.reset(seed=7)
    seen: list[Seen] = []
    for action in ([0, 0], [2, 299]):
        observation, _, _, _, info = env.step(np.array(action))
        seen.append([plain(observation), info["legal"]])
    env.close()
    return seen


def contract(dial: Dial) -> Seen:
    """What the server promises."""
    env = dial()
    found = env.env_contract.to_dict()
    env.close()
    return plain(found)


def infos(dial: Dial) -> Seen:
    """Every kind of value in an info."""
    env = dial()
    env.reset()
    seen = typed(env.step(envs.Trouble.TELL)[4])
    env.close()
    return {key: seen[key] for key in seen if key in envs.INFO}


def seeds(dial: Dial) -> Seen:
    """Seeds as the environment sees them."""
    env = dial()
    seen = [env.reset(seed=seed)[1]["seed"] for seed in (0, 7, 2**63 - 1, np.int32(5), None)]
    env.close()
    return seen


def options(dial: Dial) -> Seen:
    """Options as the environment sees them."""
    env = dial()
    deep = {"level": [1, "two"], "map": {"on": True, "none": None, "x": 2.5, "raw": b"\xfe"}}
    seen = [plain(env.reset(options=one)[1]["options"]) for one in (None, {}, deep)]
    env.close()
    return seen


def frames(dial: Dial) -> Seen:
    """Frames of every form."""
    env = dial()
    seen: dict[str, Seen] = {}
    for name in envs.FRAMES:
        env.reset(options={"frame": name})
        seen[name] = typed(env.render())
    env.close()
    return seen


def failing_step(dial: Dial) -> Seen:
    """A step that raises; then the same client again, then another."""
    return _failing(dial, lambda env: env.step(envs.Trouble.RAISE))


def failing_reset(dial: Dial) -> Seen:
    """A reset that raises."""
    return _failing(dial, lambda env: env.reset(options={"raise": True}))


def failing_render(dial: Dial) -> Seen:
    """A render that raises."""

    def fail(env: Env) -> None:
        env.reset(options={"frame": "raise"})
        env.render()

    return _failing(dial, fail)


def wrong_observation(dial: Dial) -> Seen:
    """A step whose observation is none of the space."""
    return _failing(dial, lambda env: env.step(envs.Trouble.WRONG_SHAPE))


def _failing(dial: Dial, fail: Callable[[Env], Any]) -> Seen:
    env = dial()
    env.reset()
    seen = [outcome(lambda: fail(env)), outcome(lambda: known(env.reset(seed=3)[1]))]
    env.close()
    another = dial()
    seen.append(outcome(lambda: known(another.reset(seed=4)[1])))
    another.close()
    return seen


def bad_action(dial: Dial) -> Seen:
    """Actions that are none of the space; the session goes on."""
    env = dial()
    env.reset()
    wrong: tuple[object, ...] = (99, -1, "left", [1, 2])
    seen = [outcome(partial(env.step, one)) for one in wrong]
    seen.append(env.step(envs.Trouble.GO_ON)[4]["total"])
    env.close()
    return seen


def step_before_reset(dial: Dial) -> Seen:
    """A step without an episode; then a reset."""
    env = dial()
    seen = [
        outcome(lambda: env.step(envs.Trouble.GO_ON)[1]),
        outcome(lambda: known(env.reset(seed=3)[1])),
    ]
    env.close()
    return seen


def step_after_end(dial: Dial) -> Seen:
    """A step after the episode has ended, and after one that was cut off."""
    env = dial()
    seen: list[Seen] = []
    for last in (envs.Trouble.END, envs.Trouble.CUT):
        env.reset()
        seen.append(plain(env.step(last)[1:4]))
        seen.append(outcome(lambda: env.step(envs.Trouble.GO_ON)[1:4]))
    env.close()
    return seen


def second_client(dial: Dial) -> Seen:
    """Two clients of one environment: the second has to wait for the first."""
    first, second = dial(), dial()
    first.reset()
    seen = [outcome(lambda: known(second.reset(seed=1)[1]))]
    seen.append(first.step(envs.Trouble.GO_ON)[4]["total"])
    first.close()
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = outcome(lambda: known(second.reset(seed=2)[1]))
        if "raised" not in found or time.monotonic() > end:
            break
    second.close()
    return [*seen, found]


def both_at_once(dial: Dial) -> Seen:
    """Two clients that step in turns: each has an environment of its own."""
    first, second = dial(), dial()
    first.reset()
    second.reset()
    first.step(envs.Trouble.GO_ON)
    seen = [env.step(envs.Trouble.GO_ON)[4]["total"] for env in (first, second)]
    first.close()
    second.close()
    return seen


def long_silence(dial: Dial, seconds: float) -> Seen:
    """A client that is attached and silent for longer than pings are usually borne."""
    env = dial()
    env.reset()
    time.sleep(seconds)
    seen = env.step(envs.Trouble.GO_ON)[4]["total"]
    env.close()
    return seen


def leaving(dial: Dial) -> Seen:
    """A client that was closed, closed again, and used; the server goes on."""
    env = dial()
    env.reset()
    env.close()
    env.close()
    seen = [outcome(lambda: env.step(envs.Trouble.GO_ON))]
    another = dial()
    seen.append(outcome(lambda: known(another.reset(seed=5)[1])))
    another.close()
    return seen


def timeouts(dial: Dial) -> Seen:
    """A step that takes longer than the client waits; then the client again."""
    env = dial(request_timeout_seconds=0.15)
    env.reset()
    seen = [outcome(lambda: env.step(envs.Trouble.SLEEP))]
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = outcome(lambda: known(env.reset(seed=6)[1]))
        if "raised" not in found or time.monotonic() > end:
            break
    env.close()
    return [*seen, found]


def shutdown(dial: Dial) -> Seen:
    """A client that asks the server to stop, and how it answers."""
    env = dial()
    env.reset()
    seen = outcome(lambda: env.shutdown("the test is over"))
    env.close()
    return seen


def idle(dial: Dial) -> Seen:
    """A client that is attached and silent until the server stops by itself."""
    env = dial()
    env.reset()
    end = time.monotonic() + 2 * PATIENCE_SECONDS
    while _listens(env.address) and time.monotonic() < end:
        time.sleep(0.1)  # a request would be heard, and there is nothing else to wait for
    seen = outcome(lambda: env.step(envs.Trouble.GO_ON))
    env.close()
    return seen


def _listens(address: str) -> bool:
    scheme, _, place = address.partition("://")
    family = socket.AF_UNIX if scheme == "unix" else socket.AF_INET
    host, _, port = place.rpartition(":")
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(place if scheme == "unix" else (host, int(port))) == 0
