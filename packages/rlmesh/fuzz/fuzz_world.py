"""The server that is fuzzed: a process of its own, which prints where it serves.

Run as `python fuzz_world.py plain` or `python fuzz_world.py guarded`; with `process` after it each
session has an environment in a process of its own.
"""

from __future__ import annotations

import sys
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from rlmesh import EnvServer, ServeOptions

MESSAGE_LIMIT = 8 * 2**20
SESSIONS = 24
TOKEN = "the token that attackers do not have"


class World(gymnasium.Env[Any, Any]):
    """Counts its steps; its spaces have every kind of leaf, its observations fill a few packets."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012 - as gymnasium has it

    def __init__(self) -> None:
        self.render_mode = "rgb_array"
        self.observation_space = spaces.Dict(
            count=spaces.Box(-np.inf, np.inf, (2,), np.float64),
            image=spaces.Box(0, 255, (128, 128, 3), np.uint8),
        )
        self.action_space = spaces.Dict(
            box=spaces.Box(-1.0, 1.0, (3,), np.float32),
            bits=spaces.MultiBinary(5),
            choice=spaces.Discrete(4, start=-1),
            choices=spaces.MultiDiscrete([3, 4]),
            text=spaces.Text(12, charset="abc"),
            pair=spaces.Tuple((spaces.Discrete(2), spaces.Box(0, 9, (), np.int64))),
        )
        self.steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin to count."""
        super().reset(seed=seed)
        self.steps = 0
        return self._observation(seed), {"options": options}

    def step(self, action: Any) -> Any:
        """Count one more."""
        self.steps += 1
        return self._observation(None), float(self.steps), False, self.steps >= 1000, {}

    def render(self) -> Any:
        """Return a picture."""
        return np.full((64, 64, 3), self.steps % 256, np.uint8)

    def _observation(self, seed: int | None) -> dict[str, Any]:
        image = np.full((128, 128, 3), self.steps % 256, np.uint8)
        return {
            "count": np.array([self.steps, -1 if seed is None else seed], float),
            "image": image,
        }


def main(kind: str, isolation: Literal["thread", "process"]) -> None:
    """Serve until standard input ends."""
    options = ServeOptions(
        max_sessions=SESSIONS, max_message_bytes=MESSAGE_LIMIT, isolation=isolation
    )
    guarded = kind == "guarded"
    server = EnvServer(
        World,
        "127.0.0.1:0",
        options=options,
        tls="auto" if guarded else None,
        token=TOKEN if guarded else None,
    )
    with server:
        sys.stdout.write(f"{server.address} {server.tls_fingerprint or ''}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], "process" if "process" in sys.argv[2:] else "thread")
