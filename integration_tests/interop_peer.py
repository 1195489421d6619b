"""One side of an interop test; runs under either rlmesh, and imports only what both have.

`python interop_peer.py serve KIND ADDRESS` serves until its standard input ends;
`python interop_peer.py drive KIND ADDRESS` plays episodes there and prints what it saw as JSON;
`python interop_peer.py evaluate KIND ADDRESS` has the package's own loop play and prints that.
"""

import json
import string
import sys
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

SEEDS = (7, 11)
STEPS = 4

SPACES: dict[str, spaces.Space[Any]] = {
    "box": spaces.Box(-2.0, 2.0, (2, 3), np.float32),
    "image": spaces.Box(0, 255, (96, 64, 3), np.uint8),
    "discrete": spaces.Discrete(5, start=-2),
    "dict": spaces.Dict(
        pose=spaces.Box(-1.0, 1.0, (3,), np.float64),
        nested=spaces.Dict(buttons=spaces.MultiBinary(4), gears=spaces.MultiDiscrete([3, 300])),
        pair=spaces.Tuple((spaces.Discrete(300), spaces.Text(8, min_length=1))),
    ),
    "text": spaces.Text(12, min_length=1, charset=string.ascii_letters + " é"),
}


class Mirror(gymnasium.Env[Any, Any]):
    """Gives each action back as the next observation; an episode has four steps."""

    def __init__(self, kind: str) -> None:
        self.metadata = {"render_modes": ["rgb_array"], "author": {"name": "interop", "year": 2026}}
        self.observation_space = SPACES[kind]
        self.action_space = SPACES[kind]
        self.render_mode = "rgb_array"
        self.steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {"seed": seed, "options": options}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        info = {"step": self.steps, "nothing": None, "nested": {"odd": [1, 2.5, "x", True]}}
        if self.steps == STEPS:
            info["is_success"] = True
        return action, 0.5 * self.steps, self.steps == STEPS, False, info

    def render(self) -> Any:
        return np.full((4, 6, 3), self.steps, np.uint8)


def plain(value: object) -> object:
    """The value with arrays as lists, so that JSON can say it."""
    if isinstance(value, dict):
        parts = cast("dict[str, object]", value)
        return {key: plain(parts[key]) for key in sorted(parts)}
    if isinstance(value, tuple):
        return [plain(one) for one in cast("tuple[object, ...]", value)]
    if isinstance(value, np.ndarray | np.generic):
        return cast("NDArray[np.generic]", value).tolist()
    return value


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


def play(env: Any, kind: str) -> list[Any]:
    """Play an episode for each seed and return everything that was seen."""
    actions = SPACES[kind]
    actions.seed(99)
    script = [sendable(actions.sample()) for _ in range(STEPS)]
    seen: list[Any] = []
    for seed in SEEDS:
        observation, info = env.reset(seed=seed, options={"level": [1, "two"]})
        seen.append([plain(observation), known(info)])
        for action in script:
            observation, reward, terminated, truncated, info = env.step(action)
            seen.append([plain(observation), reward, terminated, truncated, known(info)])
        frame = env.render()
        seen.append([list(frame.shape), str(frame.dtype), int(frame.max())])
    return seen


def known(info: dict[str, Any]) -> dict[str, Any]:
    """The info without what a client adds of its own."""
    return {
        key: plain(info[key]) for key in info if key not in ("episode_ids", "completed_episodes")
    }


def main() -> None:
    role, kind, address = sys.argv[1:]
    import rlmesh
    import rlmesh.numpy

    if role == "serve":
        server = rlmesh.EnvServer(Mirror(kind), address)
        server.start()
        print(server.address, flush=True)
        sys.stdin.read()
        server.shutdown()
    elif role == "drive":
        client = rlmesh.numpy.RemoteEnv(address)
        print(json.dumps(play(client, kind)))
        client.close()
    else:
        actions = SPACES[kind]
        actions.seed(99)
        script = actions.sample()
        model = rlmesh.numpy.Model(lambda observation: script)
        result = rlmesh.run(model, address, seeds=list(SEEDS))
        print(json.dumps([[one.steps, one.reward, one.success] for one in result.episodes]))


if __name__ == "__main__":
    main()
