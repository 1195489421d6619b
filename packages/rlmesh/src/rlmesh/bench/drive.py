"""One client of a measurement: it opens an environment, steps it, and checks what arrives."""

from __future__ import annotations

import base64
import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from rlcore import ConfigurationError

from rlmesh.bench.counters import tcp_bytes
from rlmesh.codec import NUMPY, Buffer, compile_batch_codec, compile_codec
from rlmesh.server.environments import close_env, make_env
from rlmesh.server.sources import load_factory, look_here
from rlmesh.spaces import Space
from rlmesh.spaces.batched import batched
from rlmesh.specs import AutoresetMode, EnvContract, contract_of

CHECKED_STEPS = 30
ACTIONS = 16
SEED = 0
LONGEST_RUN = 5_000_000
NS = 1e9
NS_PER_US = 1e3

Env = Any  # whatever has reset and step
Value = Any  # an observation or an action, by its space


class WrongObservation(ConfigurationError):
    """What arrived is not what a copy of the environment in this process gives."""

    default_code = "wrong_observation"


class NotReproducible(ConfigurationError):
    """Two copies of the environment with one seed differ, so that nothing can be checked."""

    default_code = "not_reproducible"


class Drive:
    """Steps one environment with a cycle of actions, and resets it where episodes end.

    Lanes that start again by themselves are not reset.

    Args:
        address: where it is served; None: it is made in this process.
        source: what makes it here, and copies to check against; None where it is only served.
        options: options of the client.
        lanes: how many environments one step steps.
        check: whether what arrives is compared with a copy's.
    """

    def __init__(
        self,
        address: str | None,
        source: str | None,
        options: Mapping[str, object],
        *,
        lanes: int = 1,
        check: bool = True,
    ) -> None:
        self._copy: Env = _made(source) if check and source is not None else None
        self.env: Env = _dialled(address, options, lanes) if address else _made(source or "")
        self._lanes = lanes
        self._actions = _actions(_action_space(self.env), lanes)
        self._ended = _end_of(self.env, lanes)
        self._steps = 0
        self.checked = 0

    def begin(self) -> float:
        """Reset for the first time; return the monotonic time of the answer.

        Raises:
            WrongObservation: the observation is not the copy's.
        """
        observation, _ = self.env.reset(seed=SEED)
        answered = time.monotonic()
        if self._copy is not None:
            self._check(observation, self._copy.reset(seed=SEED)[0])
        return answered

    def warm_up(self) -> None:
        """Take the first steps, each of them checked.

        Raises:
            WrongObservation: an observation is not the copy's.
        """
        for _ in range(CHECKED_STEPS):
            observation = self._advance(self.env)
            if self._copy is not None:
                self._check(observation, self._advance(self._copy))
            self._steps += 1

    def run(self, steps: int, seconds: float) -> dict[str, object]:
        """Step until the steps or the seconds are used up, then check the last observation.

        Raises:
            WrongObservation: it is not the copy's after as many steps.
        """
        env, actions, clock = self.env, self._cycle(), time.perf_counter_ns
        ended = self._ended
        latencies: list[int] = []
        observation: Value = None
        most = min(steps, LONGEST_RUN)
        carried = tcp_bytes()
        gc.collect()
        cpu, began = time.process_time(), clock()
        deadline = began + int(seconds * NS)
        for action in actions:
            start = clock()
            observation, _, terminated, truncated, _ = env.step(action)
            end = clock()
            latencies.append(end - start)
            if ended(terminated, truncated):
                observation, _ = env.reset()
            if len(latencies) == most or end > deadline:
                break
        took, cpu = (clock() - began) / NS, time.process_time() - cpu
        now_carried, count = tcp_bytes(), len(latencies)
        self._follow(observation, count)
        return {
            "steps": count,
            "seconds": took,
            "cpu_s": cpu,
            "tcp_bytes": None if now_carried is None else now_carried - (carried or 0),
            "limited": count < steps,
            "checked": self.checked,
            "payload_bytes": self._payload(observation),
            "latencies_us": packed(np.array(latencies) / NS_PER_US),
        }

    def close(self) -> None:
        """Let go of the environment and of the copy."""
        self.env.close()
        if self._copy is not None:
            self._copy.close()

    def _follow(self, observation: Value, count: int) -> None:
        if self._copy is None:
            self._steps += count
            return
        expected: Value = None
        for _ in range(count):
            expected = self._advance(self._copy)
            self._steps += 1
        self._check(observation, expected)

    def _advance(self, env: Env) -> Value:
        observation, _, terminated, truncated, _ = env.step(self._action())
        if self._ended(terminated, truncated):
            observation, _ = env.reset()
        return observation

    def _cycle(self) -> Iterator[Value]:
        index, actions = self._steps, self._actions
        while True:
            yield actions[index % len(actions)]
            index += 1

    def _action(self) -> Value:
        return self._actions[self._steps % len(self._actions)]

    def _check(self, got: Value, expected: Value) -> None:
        if not same(got, expected):
            raise WrongObservation(
                f"after {self._steps} steps what arrived is {_short(got)}, and a copy of the "
                f"environment in this process gives {_short(expected)}",
                hint="Is it the same for the same seed and actions? If not, serve it yourself and "
                "give the address: nothing is checked then.",
            )
        self.checked += 1

    def _payload(self, observation: Value) -> int:
        pairs = (
            (_action_space(self.env), self._actions[0]),
            (_observation_space(self.env), observation),
        )
        return sum(sum(map(len, self._encoded(space, value))) for space, value in pairs)

    def _encoded(self, space: Space, value: Value) -> Sequence[Buffer]:
        if self._lanes > 1:
            return compile_batch_codec(space, backend=NUMPY).encode(value, self._lanes)
        return compile_codec(space, backend=NUMPY).encode(value)


def same(got: Value, expected: Value) -> bool:
    """Return whether two observations are equal, in values and shapes, parts included."""
    if isinstance(expected, Mapping):
        parts = cast("Mapping[str, object]", expected)
        return got.keys() == parts.keys() and all(same(got[key], parts[key]) for key in parts)
    if isinstance(expected, tuple | list):
        children = cast("Sequence[object]", expected)
        return len(got) == len(children) and all(map(same, got, children))
    if isinstance(expected, str):
        return bool(got == expected)
    mine, theirs = np.asarray(got), np.asarray(expected)
    if mine.shape != theirs.shape:
        return False
    # An environment may give wider elements than its space has; they travel as the space says.
    return np.array_equal(mine, theirs.astype(mine.dtype), equal_nan=mine.dtype.kind == "f")


def packed(latencies: NDArray[np.floating]) -> str:
    """Return the latencies as text, for a line of JSON."""
    return base64.b64encode(latencies.astype("<f4").tobytes()).decode("ascii")


def unpacked(text: str) -> NDArray[np.float32]:
    """Return the latencies that `packed` made a text of."""
    return np.frombuffer(base64.b64decode(text), "<f4")


def lanes_of(env: Env) -> int:
    """Return how many environments one step of an environment steps."""
    return int(getattr(env, "num_envs", 1)) if hasattr(env, "single_observation_space") else 1


def lanes_at(source: str) -> int:
    """Return how many environments one step of what a source makes steps."""
    env = _made(source)
    try:
        return lanes_of(env)
    finally:
        close_env(env)


def check_reproducible(source: str, lanes: int) -> None:
    """Return when two copies of an environment agree, with one seed and the same actions.

    Raises:
        NotReproducible: they do not.
    """
    drive = Drive(None, source, {}, lanes=lanes)
    try:
        drive.begin()
        drive.warm_up()
    except WrongObservation as error:
        reason = f"two copies of {source!r} with one seed give other observations"
        raise NotReproducible(reason) from error
    finally:
        drive.close()


def _made(source: str) -> Env:
    look_here()
    return make_env(load_factory(source))


def _dialled(address: str, options: Mapping[str, object], lanes: int) -> Env:
    given = cast("dict[str, Any]", dict(options))  # Any: checked by the client
    if lanes > 1:
        from rlmesh.client.numpy_vector_env import RemoteVectorEnv

        return RemoteVectorEnv(address, **given)
    from rlmesh.client.numpy_env import RemoteEnv

    return RemoteEnv(address, **given)


def _end_of(env: Env, lanes: int) -> Callable[[Any, Any], object]:
    """Return what tells of a step's flags whether the environment has to be reset."""
    if lanes == 1:
        return lambda terminated, truncated: terminated or truncated
    if _contract(env).autoreset_mode is AutoresetMode.DISABLED:
        return lambda terminated, truncated: np.any(terminated) or np.any(truncated)
    return lambda terminated, truncated: False


def _actions(space: Space, lanes: int) -> list[Value]:
    drawn = (space if lanes == 1 else batched(space, lanes)).using(NUMPY)
    drawn.seed(SEED)
    return [drawn.sample() for _ in range(ACTIONS)]


def _contract(env: Env) -> EnvContract:
    contract: EnvContract | None = getattr(env, "env_contract", None)
    return contract_of(env) if contract is None else contract


def _action_space(env: Env) -> Space:
    return _contract(env).action_space


def _observation_space(env: Env) -> Space:
    return _contract(env).observation_space


def _short(value: Value) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 120 else f"{text[:117]}..."
