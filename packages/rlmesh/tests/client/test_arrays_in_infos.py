"""Arrays in infos and options keep their type and shape, over every lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
import rlmesh
import rlmesh.numpy
from gymnasium import spaces
from rlmesh.server.env_server import EnvServer

Serve = Callable[..., EnvServer]


class Telling(gymnasium.Env[Any, Any]):
    """Tells arrays in every info, and gives back the options that it got."""

    def __init__(self) -> None:
        self.observation_space = spaces.Discrete(2)
        self.action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        return 0, {"options": options, "mask": np.array([True, False])}

    def step(self, action: Any) -> Any:
        info = {"depth": np.ones((4, 3), np.float16), "inner": [{"ids": np.arange(2, dtype="u8")}]}
        return 0, 0.0, bool(action), False, info


@pytest.mark.parametrize("lane", ["grpc", "local", "tcp"])
def test_arrays_arrive_with_their_type_and_shape(serve: Serve, lane: Any) -> None:
    with rlmesh.numpy.RemoteEnv(serve(Telling), lane=lane) as env:
        _, told = env.reset(seed=1, options={"start": np.array([[1.5]], np.float32)})
        start = told["options"]["start"]
        assert (start.dtype, start.shape, start.item()) == (np.float32, (1, 1), 1.5)
        assert told["mask"].dtype == np.bool_
        for action in (0, 1):
            *_, info = env.step(action)
            depth, ids = info["depth"], info["inner"][0]["ids"]
            assert (depth.dtype, depth.shape, depth.flags.writeable) == (np.float16, (4, 3), True)
            assert (ids.dtype, ids.tolist()) == (np.uint64, [0, 1])


def test_native_clients_get_them_as_numpy_arrays(serve: Serve) -> None:
    with rlmesh.RemoteEnv(serve(Telling)) as env:
        _, told = env.reset(options={"tensor": rlmesh.Tensor(b"\1\2", [2], "uint8")})
        assert told["options"]["tensor"].tolist() == [1, 2]
        assert isinstance(told["mask"], np.ndarray)
