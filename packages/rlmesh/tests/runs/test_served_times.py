"""Telemetry tells a server's own time from the way there and back."""

import time
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import rlmesh
from rlmesh import EnvServer, ModelServer, RunResult
from rlmesh.numpy import Model, RemoteEnv, RemoteVectorEnv
from rlmesh.runs.telemetry import TelemetryRow

from .conftest import Corridor

SLOW_SECONDS = 0.02
RIGHT = Model(lambda observation: 1)


def measured(result: RunResult) -> dict[tuple[str, str], TelemetryRow]:
    return {(row.op, row.metric): row for row in result.telemetry}


def slow_step(seed: int | None, step: int) -> None:
    time.sleep(SLOW_SECONDS)


@pytest.mark.parametrize("lane", ["auto", "grpc"])
def test_a_slow_environment_is_told_from_a_slow_way(lane: Any) -> None:
    with (
        EnvServer(Corridor(on_step=slow_step), "tcp://127.0.0.1:0") as server,
        RemoteEnv(server.address, lane=lane) as env,
    ):
        untold = env.last_timing
        rows = measured(rlmesh.run(RIGHT, env, episodes=2))

        timing = env.last_timing
    assert untold is None
    assert timing is not None
    assert timing.total >= (timing.user or 0) >= SLOW_SECONDS * 1e9
    whole, there, own, wire = (
        rows["env.step", metric]
        for metric in ("rpc.total", "endpoint.total", "endpoint.user", "rpc.wire")
    )
    assert whole.count == there.count == own.count == wire.count == 6
    assert whole.avg > there.avg > own.avg >= SLOW_SECONDS * 1000
    assert wire.avg == pytest.approx(whole.avg - there.avg)
    assert 0 < wire.p50 < SLOW_SECONDS * 1000


def test_lanes_are_told_of_likewise() -> None:
    lanes = gym.vector.SyncVectorEnv([lambda: Corridor(on_step=slow_step)] * 2)
    with (
        EnvServer(lanes, "tcp://127.0.0.1:0") as server,
        RemoteVectorEnv(server.address) as envs,
    ):
        rows = measured(rlmesh.run(RIGHT, envs, seeds=[1, 2]))

    assert rows["env.step", "endpoint.user"].avg >= 2 * SLOW_SECONDS * 1000
    assert rows["env.step", "rpc.wire"].count == rows["env.step", "rpc.total"].count


def test_a_slow_model_is_told_from_the_way_to_it() -> None:
    def predict(observation: object) -> int:
        time.sleep(SLOW_SECONDS)
        return 1

    with ModelServer(Model(predict)) as server:
        rows = measured(rlmesh.run(rlmesh.RemoteModel(server.address), Corridor(), episodes=2))

    assert rows["model.predict", "rpc.total"].avg > rows["model.predict", "endpoint.total"].avg
    assert rows["model.predict", "endpoint.user"].avg >= SLOW_SECONDS * 1000
    assert 0 < rows["model.predict", "rpc.wire"].p50 < SLOW_SECONDS * 1000
    assert rows["env.step", "endpoint.total"].count == 6  # in this process
    assert ("env.step", "rpc.wire") not in rows


def test_what_is_called_in_this_process_has_no_wire() -> None:
    rows = measured(rlmesh.run(RIGHT, Corridor(), episodes=1))

    assert {metric for _, metric in rows} == {"endpoint.total"}
    assert np.isfinite([row.avg for row in rows.values()]).all()
