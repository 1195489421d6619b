"""Write an environment with parameters that are checked, described, served and run."""

from typing import Any

import gymnasium
import numpy as np
import rlmesh
from gymnasium import spaces
from rlmesh import Param, ParamSpec, Variant
from rlmesh.params import ParamError


class Corridor(gymnasium.Env[np.int64, np.int64]):
    """Walk right to the end of a corridor; every step costs a little."""

    action_space = spaces.Discrete(2)

    def __init__(self, length: int, wind: float) -> None:
        self.observation_space = spaces.Discrete(length)
        self.end = length - 1
        self.wind = wind

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = 0
        return np.int64(0), {}

    def step(self, action: np.int64) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        blown = self.np_random.random() < self.wind
        step = 1 if action == 1 and not blown else -1
        self.place = min(max(self.place + step, 0), self.end)
        there = self.place == self.end
        return np.int64(self.place), 1.0 if there else -0.01, there, False, {"is_success": there}


class Corridors(rlmesh.EnvFactory):
    params = ParamSpec(
        Param("length", int, description="how many places there are", minimum=2, maximum=100),
        Param("wind", float, description="how often a step is blown back", minimum=0, maximum=1),
    )

    def make(self, length: int = 10, wind: float = 0.0) -> Corridor:
        return Corridor(length, wind)

    def prepare(self) -> None:
        print("prepared, once")

    def close(self) -> None:
        print("closed, at the end")

    @classmethod
    def enumerate_variants(cls) -> list[Variant]:
        return [Variant("calm", {"wind": 0.0}), Variant("stormy", {"length": 20, "wind": 0.4})]


always_right = rlmesh.Model(lambda _: 1)

try:
    Corridors().start(lenght=20)
except ParamError as error:
    print("refused before anything was made:", error)

with Corridors().start(length=20, wind=0.4) as server:
    print(rlmesh.run(always_right, server, seeds=range(5)))

print(rlmesh.run(always_right, Corridors, seeds=range(5)))
print([variant["id"] for variant in rlmesh.describe(Corridors)["variants"]["catalog"]])
