"""Put an environment of your own on the platform, served by you.

Needs a server: `rleaas serve`, and RLEAAS_BASE_URL if it is not at http://localhost:8000.
"""

from typing import Any

import gymnasium
import numpy as np
import rlmesh
from gymnasium import spaces
from rleaas import Client


class Corridor(gymnasium.Env[np.int64, np.int64]):
    """Walk right to the end of a corridor; every step costs a little."""

    observation_space = spaces.Discrete(10)
    action_space = spaces.Discrete(2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = self.np_random.integers(0, 5)
        return self.place, {}

    def step(self, action: np.int64) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        self.place = np.clip(self.place + (1 if action == 1 else -1), 0, 9)
        there = bool(self.place == 9)
        return self.place, 1.0 if there else -0.01, there, False, {"is_success": there}


with rlmesh.EnvServer(Corridor, "tcp://127.0.0.1:0") as server, Client() as client:
    client.Environment.create("Corridor", source=server.address).wait_until_ready()
    always_right = rlmesh.Model(lambda _: 1)
    print(rlmesh.run(always_right, "rleaas://Corridor", seeds=range(5)))
