"""Environments whose episodes end at times of their own, and servers of several of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from rlmesh.server.env_server import EnvServer

# A default charset would come back as any character.
LETTERS = "aé z"
SPACES: dict[str, spaces.Space[Any]] = {
    "box": spaces.Box(-1.0, 1.0, (2, 3), np.float32),
    "discrete": spaces.Discrete(5, start=-2),
    "dict": spaces.Dict(
        pose=spaces.Box(-1.0, 1.0, (3,), np.float64),
        nested=spaces.Dict(buttons=spaces.MultiBinary(4), gears=spaces.MultiDiscrete([3, 300])),
        pair=spaces.Tuple((spaces.Discrete(7), spaces.Text(8, charset=LETTERS))),
    ),
    "text": spaces.Text(12, min_length=0, charset=LETTERS),
}


class Wanderer(gymnasium.Env[Any, Any]):
    """Gives random observations of a space, and ends after a random number of steps.

    The first observations of an episode, its length and its infos come from the generator, which
    only a seed restarts: two of them agree as long as they are reset and stepped alike.
    """

    def __init__(self, kind: str = "box", longest: int = 6) -> None:
        self.observation_space = self.action_space = SPACES[kind]
        self.metadata = {"render_modes": ["rgb_array"], "kind": kind}
        self.render_mode = "rgb_array"
        self.longest = longest
        self.resets: list[tuple[int | None, dict[str, Any] | None]] = []
        self.actions: list[Any] = []
        self.steps = 0
        self.ends_at = 0
        self.closed = 0
        self.raises_at = -1

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.resets.append((seed, options))
        self.steps = 0
        self.ends_at = int(self.np_random.integers(2, self.longest + 1))
        return self._observation(), {"start": self.ends_at}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        self.actions.append(action)
        if self.steps == self.raises_at:
            raise RuntimeError("the arm is stuck")
        over = self.steps >= self.ends_at
        truncated = over and bool(self.np_random.integers(2))
        info: dict[str, Any] = {
            "step": self.steps,
            "at": np.array([self.steps, self.ends_at], np.int16),
        }
        if self.steps % 2:
            info |= {"odd": f"after {self.steps}", "inner": {"half": self.steps / 2}}
        if over:
            info["is_success"] = not truncated
        return self._observation(), 0.5 * self.steps, over and not truncated, truncated, info

    def render(self) -> Any:
        return np.full((4, 6, 3), self.steps, np.uint8)

    def close(self) -> None:
        self.closed += 1

    def _observation(self) -> Any:
        self.observation_space.seed(int(self.np_random.integers(2**31)))
        return self.observation_space.sample()


@pytest.fixture
def wanderer() -> type[Wanderer]:
    return Wanderer


@pytest.fixture
def serve() -> Iterator[Callable[..., EnvServer]]:
    """Start a server that is shut down at the end of the test."""
    servers: list[EnvServer] = []

    def start(env: object, *arguments: Any, **options: Any) -> EnvServer:
        server = EnvServer(env, *arguments, **options)
        servers.append(server)
        server.start()
        return server

    yield start
    for server in servers:
        server.shutdown()
