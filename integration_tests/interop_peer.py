"""One side of the interop tests; it runs under either rlmesh and imports only what both have.

`python interop_peer.py` obeys lines of JSON on standard input, one after another, and answers with
lines of JSON: `serve` an environment, `stop` serving, or play one of the scripts below.
"""

# mypy knows the files of this folder under other names than a script beside them does.
# mypy: disable-error-code="import-not-found"

import hashlib
import json
import socket
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import gymnasium
import interop_envs as envs
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

Env = Any  # either package's client, or a local environment
Seen = Any  # what JSON holds
Dial = Callable[..., Env]

SEEDS = (7, 11)
PATIENCE_SECONDS = 5.0
LARGE = 100  # elements; more are compared by their digest


def made(kind: str, arrangement: str) -> Any:
    """What is served: one environment, a list of lanes, or a native vector environment."""
    if arrangement == "factory":
        return envs.Trouble
    if arrangement == "scalar":
        return envs.Trouble() if kind == "Trouble" else envs.Mirror(kind)
    lanes = [_lane(kind, number) for number in range(envs.LANES)]
    if arrangement == "lanes":
        return [make() for make in lanes]
    mode = gymnasium.vector.AutoresetMode.NEXT_STEP
    if arrangement == "vector, no autoreset":
        mode = gymnasium.vector.AutoresetMode.DISABLED
    return gymnasium.vector.SyncVectorEnv(lanes, autoreset_mode=mode)


class Beside:
    """Environments beside each other in this process, stepped one after another."""

    def __init__(self, lanes: list[Any], space: envs.Space) -> None:
        self._lanes, self._space = lanes, space

    def reset(self, *, seed: list[int]) -> tuple[Any, dict[str, Any]]:
        found = [env.reset(seed=one)[0] for env, one in zip(self._lanes, seed, strict=True)]
        return batched(found, self._space), {}

    def step(self, actions: Any) -> tuple[Any, ...]:
        parts = apart(actions, self._space, len(self._lanes))
        steps = [env.step(part) for env, part in zip(self._lanes, parts, strict=True)]
        observations, rewards, terminated, truncated, _ = zip(*steps, strict=True)
        flags = (np.array(rewards), np.array(terminated), np.array(truncated))
        return batched(list(observations), self._space), *flags, {}

    def close(self) -> None:
        """Hold nothing."""


def local(kind: str, arrangement: str) -> Any:
    """What is served, in this process, with the same methods as a client of several lanes."""
    found = made(kind, arrangement)
    leaf = envs.SPACES["Discrete"]
    return Beside(found, envs.SPACES.get(kind, leaf)) if arrangement == "lanes" else found


def _lane(kind: str, number: int) -> Callable[[], Any]:
    if kind == "Counting":
        return lambda: envs.Counting(number)
    return lambda: envs.Mirror(kind)


# Values as JSON has them


def plain(value: object) -> Seen:
    """The value with arrays as lists, and what JSON has no words for as a text."""
    if isinstance(value, dict):
        parts = cast("dict[str, object]", value)
        return {key: plain(parts[key]) for key in sorted(parts)}
    if isinstance(value, list | tuple):
        return [plain(one) for one in cast("list[object]", value)]
    if isinstance(value, np.ndarray | np.generic):
        return plain(cast("NDArray[np.generic]", value).tolist())
    if isinstance(value, bytes):
        return f"bytes {value.hex()}"
    if isinstance(value, float) and not np.isfinite(value):
        return repr(value)
    return value


def typed(value: object) -> Seen:
    """As `plain`, with the element type and shape of each array."""
    if isinstance(value, dict):
        parts = cast("dict[str, object]", value)
        return {key: typed(parts[key]) for key in sorted(parts)}
    if isinstance(value, list | tuple):
        return [typed(one) for one in cast("list[object]", value)]
    if isinstance(value, np.ndarray):
        array = cast("NDArray[np.generic]", value)
        return [str(array.dtype), list(array.shape), plain(array)]
    return plain(value)


def known(info: dict[str, Any]) -> Seen:
    """The info without what a client adds of its own."""
    added = ("episode_ids", "completed_episodes")
    return {key: plain(info[key]) for key in sorted(info) if key not in added}


def sendable(value: object) -> object:
    """The value with gymnasium's int8 as uint8: the published client takes nothing else."""
    if isinstance(value, dict):
        return {key: sendable(part) for key, part in cast("dict[str, object]", value).items()}
    if isinstance(value, tuple):
        return tuple(sendable(part) for part in cast("tuple[object, ...]", value))
    if isinstance(value, np.ndarray):
        array = cast("NDArray[np.generic]", value)
        return array.astype(np.uint8) if array.dtype == np.int8 else array
    return value


def children(space: Any) -> Any:  # Any: gymnasium leaves its children's type open
    """The spaces that a Dict or a Tuple is made of."""
    return space.spaces


def told(value: Any, space: envs.Space) -> Seen:
    """A value of a space as JSON has it, with the element type and shape of each Box."""
    if isinstance(space, spaces.Dict):
        assert sorted(value) == sorted(children(space))
        return {key: told(value[key], child) for key, child in sorted(children(space).items())}
    if isinstance(space, spaces.Tuple):
        return [told(part, child) for part, child in zip(value, children(space), strict=True)]
    if isinstance(space, spaces.Box):
        array = np.asarray(value)
        large = array.size > LARGE
        content = hashlib.sha256(array.tobytes()).hexdigest() if large else plain(value)
        return [str(array.dtype), list(array.shape), content]
    if isinstance(space, spaces.Text):
        assert isinstance(value, str)
        return value
    # A published server makes all of MultiBinary uint8, and all of Discrete 64 bits wide.
    return [list(np.shape(value)), plain(value)]


def sampled(space: envs.Space, count: int) -> list[Any]:
    """Examples of a space, the same in every process; int8 stays where a Box declares it."""
    space.seed(99)
    found = [space.sample() for _ in range(count)]
    return found if isinstance(space, spaces.Box) else [sendable(one) for one in found]


def batched(values: list[Any], space: envs.Space) -> Any:
    """One action for each lane, as one tree: what both clients take."""
    if isinstance(space, spaces.Dict):
        parts = children(space)
        return {key: batched([one[key] for one in values], parts[key]) for key in parts}
    if isinstance(space, spaces.Tuple):
        columns = list(zip(*values, strict=True))
        return tuple(map(batched, map(list, columns), children(space)))
    if isinstance(space, spaces.Text):
        return list(values)
    return np.stack([np.asarray(one) for one in values])


def apart(value: Any, space: envs.Space, lanes: int) -> list[Any]:
    """A batch as one value for each lane."""
    if isinstance(space, spaces.Dict):
        parts = {key: apart(value[key], child, lanes) for key, child in children(space).items()}
        return [{key: parts[key][lane] for key in parts} for lane in range(lanes)]
    if isinstance(space, spaces.Tuple):
        columns = [
            apart(part, child, lanes) for part, child in zip(value, children(space), strict=True)
        ]
        return [tuple(column[lane] for column in columns) for lane in range(lanes)]
    assert len(value) == lanes
    return list(value)


def outcome(call: Callable[[], Any]) -> Seen:
    """What a call gives, or the names of the classes of what it raises."""
    try:
        return plain(call())
    except Exception as error:
        names = [one.__name__ for one in type(error).__mro__]
        return {"raised": names, "text": str(error)}


# Scripts: each plays with what `dial` connects to, and returns what it saw


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


def play_lanes(dial: Dial, kind: str, steps: int, resets: int) -> Seen:
    """Episodes of several mirrors beside each other: all but the infos, lane by lane."""
    env, space = dial(), envs.SPACES[kind]
    script = sampled(space, envs.LANES * steps)
    seen: list[Seen] = []
    for number in range(resets):
        observations, _ = env.reset(seed=[10 * number + lane for lane in range(envs.LANES)])
        seen.append([told(one, space) for one in apart(observations, space, envs.LANES)])
        for step in range(steps):
            actions = script[envs.LANES * step : envs.LANES * (step + 1)]
            observations, *outcome_, _ = env.step(batched(actions, space))
            lanes = [told(one, space) for one in apart(observations, space, envs.LANES)]
            seen.append([lanes, *(plain(np.asarray(one)) for one in outcome_)])
    env.close()
    return seen


def lane_ends(dial: Dial, steps: int) -> Seen:
    """Lanes whose episodes end apart: observations, rewards and flags of every step."""
    env = dial()
    seen = [plain(np.asarray(env.reset(seed=[10, 20, 30])[0]))]
    for step in range(steps):
        outcome_ = env.step(np.array([1, 2, step % 3]))[:4]
        seen.append([plain(np.asarray(one)) for one in outcome_])
    env.close()
    return seen


def lane_seeds(dial: Dial) -> Seen:
    """The seeds that lanes see: one for each, one number for all, and none."""
    env = dial()
    asked: tuple[object, ...] = ([4, 5, 6], 7, None)
    seen = [plain(np.asarray(env.reset(seed=one)[0])[:, 0]) for one in asked]
    env.close()
    return seen


def lane_infos(dial: Dial) -> Seen:
    """The infos of a reset, and of a step in which the first lane ends."""
    env = dial()
    seen = [known(env.reset(seed=[4, 5, 6])[1])]
    seen += [known(env.step(np.array([1, 2, 3]))[4]) for _ in range(2)]
    env.close()
    return seen


def lane_frames(dial: Dial) -> Seen:
    """Each lane's frame, by a new client: a frame that fails may end the session."""
    seen: list[Seen] = []
    for lane in range(envs.LANES):
        env = dial()
        env.reset(seed=[1, 2, 3])
        seen.append(outcome(lambda: typed(env.render(env_index=lane))))  # noqa: B023 - called here
        env.close()
    return seen


def lane_failure(dial: Dial) -> Seen:
    """A lane that raises; then another client."""
    env = dial()
    env.reset(seed=[1, 2, 3])
    seen = [outcome(lambda: env.step(np.array([1, 8, 1])))]
    env.close()
    another = dial()
    seen.append(plain(np.asarray(another.reset(seed=[7, 8, 9])[0])))
    another.close()
    return seen


def lane_arity(dial: Dial) -> Seen:
    """Actions for another number of lanes than there are; the session goes on."""
    env = dial()
    env.reset(seed=[1, 2, 3])
    seen = [outcome(lambda: env.step(np.array([1, 1])))]
    seen.append(plain(np.asarray(env.step(np.array([1, 1, 1]))[1])))
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


SCRIPTS: Mapping[str, Callable[..., Seen]] = {
    one.__name__: one
    for one in (
        play,
        play_lanes,
        lane_ends,
        lane_seeds,
        lane_infos,
        lane_frames,
        lane_failure,
        lane_arity,
        zero_based,
        contract,
        infos,
        seeds,
        options,
        frames,
        failing_step,
        failing_reset,
        failing_render,
        wrong_observation,
        bad_action,
        step_before_reset,
        step_after_end,
        second_client,
        both_at_once,
        long_silence,
        leaving,
        timeouts,
        shutdown,
        idle,
    )
}


class Peer:
    """Obeys commands."""

    def __init__(self) -> None:
        self.servers: dict[str, Any] = {}

    def serve(self, kind: str, arrangement: str, address: str, limits: dict[str, Any]) -> str:
        import rlmesh

        server = rlmesh.EnvServer(
            made(kind, arrangement), address, options=rlmesh.ServeOptions(**limits)
        )
        server.start()
        self.servers[server.address] = server
        return str(server.address)

    def stop(self, address: str) -> bool:
        self.servers.pop(address).shutdown()
        return True

    def script(self, name: str, address: str, vector: bool, arguments: list[Any]) -> Seen:
        import rlmesh.numpy

        kind: Any = rlmesh.numpy.RemoteVectorEnv if vector else rlmesh.numpy.RemoteEnv
        return SCRIPTS[name](partial(kind, address), *arguments)

    def evaluate(self, address: str, kind: str) -> Seen:
        import rlmesh
        import rlmesh.numpy

        return evaluated(rlmesh.run, rlmesh.numpy.Model, address, kind)


def evaluated(
    run: Callable[..., Any], model_class: Callable[..., Any], env: Any, kind: str
) -> Seen:
    """What the package's own loop says about episodes of a mirror."""
    action = sampled(envs.SPACES[kind], 1)[0]

    def policy(observation: Any) -> Any:
        return action

    result = run(model_class(policy), env, seeds=list(SEEDS))
    return [[one.steps, one.reward, one.success] for one in result.episodes]


def main() -> None:
    peer = Peer()
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        answer = outcome(partial(getattr(peer, command), *arguments))
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
