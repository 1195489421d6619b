"""One side of the interop tests; it runs under either rlmesh and imports only what both have.

`python interop_peer.py` obeys lines of JSON on standard input, one after another, and answers with
lines of JSON: `serve` an environment, `stop` serving, or play one of the scripts beside this file.
"""

# mypy knows the files of this folder under other names than a script beside them does.
# mypy: disable-error-code="import-not-found"

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import gymnasium
import interop_envs as envs
import interop_lane_scripts as of_lanes
import interop_models as of_models
import interop_scripts as of_one
import numpy as np
from interop_values import Seen, apart, batched, outcome, sampled


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
    if arrangement == "vector, same step":
        mode = gymnasium.vector.AutoresetMode.SAME_STEP
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


SCRIPTS: Mapping[str, Callable[..., Seen]] = {
    one.__name__: one
    for one in (
        of_one.play,
        of_lanes.play_lanes,
        of_lanes.lane_ends,
        of_lanes.lane_seeds,
        of_lanes.lane_infos,
        of_lanes.lane_frames,
        of_lanes.lane_failure,
        of_lanes.lane_arity,
        of_lanes.lane_options,
        of_lanes.lane_mask,
        of_lanes.lane_shutdown,
        of_lanes.lane_timeout,
        of_lanes.lane_too_early,
        of_lanes.warnings,
        of_one.zero_based,
        of_one.contract,
        of_one.infos,
        of_one.seeds,
        of_one.options,
        of_one.frames,
        of_one.failing_step,
        of_one.failing_reset,
        of_one.failing_render,
        of_one.wrong_observation,
        of_one.bad_action,
        of_one.step_before_reset,
        of_one.step_after_end,
        of_one.second_client,
        of_one.both_at_once,
        of_one.long_silence,
        of_one.leaving,
        of_one.timeouts,
        of_one.shutdown,
        of_one.idle,
    )
}


class Peer:
    """Obeys commands."""

    def __init__(self) -> None:
        self.servers: dict[str, Any] = {}
        self.ended: list[str] = []

    def serve(self, kind: str, arrangement: str, address: str, limits: dict[str, Any]) -> str:
        import rlmesh

        server = rlmesh.EnvServer(
            made(kind, arrangement), address, options=rlmesh.ServeOptions(**limits)
        )
        server.start()
        self.servers[server.address] = server
        return str(server.address)

    def serve_model(self, name: str, address: str, limits: dict[str, Any]) -> str:
        """Serve a model at a place that is named: the published package tells of no other."""
        import rlmesh
        import rlmesh.numpy

        self.ended = []
        model = of_models.made_model(name, rlmesh.numpy.Model, self.ended)
        options = rlmesh.ServeOptions(**limits)
        serving = threading.Thread(
            target=partial(model.serve, address, options=options), daemon=True
        )
        serving.start()
        reached(address, serving)
        return address

    def episodes_ended(self) -> int:
        return len(self.ended)

    def play(self, name: str, address: str, arguments: list[Any]) -> Seen:
        import rlmesh.numpy

        with Sessions(rlmesh.numpy.RemoteModel(address)) as sessions:
            return of_models.MODEL_SCRIPTS[name](sessions, *arguments)

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


class Sessions:
    """Opens sessions of one model with environments that this process serves."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._servers: list[Any] = []
        self._envs: list[Any] = []

    def __call__(self, kind: str, **options: Any) -> Any:
        import rlmesh.numpy

        # The published package makes values as the environment's client has them.
        env = rlmesh.numpy.RemoteEnv(self._served(kind))
        self._envs.append(env)
        return self._model.session(env, **options)

    def run(self, kind: str, seeds: list[int]) -> Any:
        """Evaluate the model by the package's own loop."""
        import rlmesh

        return rlmesh.run(self._model, self._served(kind), seeds=seeds)

    def _served(self, kind: str) -> str:
        import rlmesh

        server = rlmesh.EnvServer(envs.Mirror(kind), "127.0.0.1:0")
        server.start()
        self._servers.append(server)
        return str(server.address)

    def __enter__(self) -> "Sessions":
        return self

    def __exit__(self, *_: object) -> None:
        for env in self._envs:
            env.close()
        for server in self._servers:
            server.shutdown()


def reached(address: str, serving: threading.Thread) -> None:
    """Wait until somebody listens at an address."""
    scheme, _, place = address.partition("://")
    end = time.monotonic() + 20
    while time.monotonic() < end and serving.is_alive():
        if listens(scheme, place):
            return
        time.sleep(0.02)  # another thread binds it, and nothing tells when
    raise TimeoutError(f"nobody listens at {address}")


def listens(scheme: str, place: str) -> bool:
    """Tell whether a connection to a place is taken."""
    host, _, port = place.rpartition(":")
    family = socket.AF_UNIX if scheme == "unix" else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(place if scheme == "unix" else (host, int(port))) == 0


def evaluated(
    run: Callable[..., Any], model_class: Callable[..., Any], env: Any, kind: str
) -> Seen:
    """What the package's own loop says about episodes of a mirror."""
    action = sampled(envs.SPACES[kind], 1)[0]

    def policy(observation: Any) -> Any:
        return action

    result = run(model_class(policy), env, seeds=list(of_one.SEEDS))
    return [[one.steps, one.reward, one.success] for one in result.episodes]


def main() -> None:
    peer = Peer()
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        answer = outcome(partial(getattr(peer, command), *arguments))
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
