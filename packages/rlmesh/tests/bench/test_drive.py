import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from rlmesh import EnvServer, spaces
from rlmesh.bench.counters import cpu_seconds, resident_bytes
from rlmesh.bench.drive import (
    CHECKED_STEPS,
    Drive,
    NotReproducible,
    WrongObservation,
    check_reproducible,
    lanes_at,
    same,
    unpacked,
)
from rlmesh.bench.reference import REFERENCES, Frames, image, noop
from rlmesh.server.sources import load_factory

NOOP = REFERENCES["noop"].source


class Off(Frames):
    """The noop environment, but one late observation is another."""

    def __init__(self, step: int) -> None:
        super().__init__("noop", spaces.Box(-np.inf, np.inf, (4,), "float32"))
        self.bad_step = step

    def step(self, action: object) -> tuple[Any, float, bool, bool, dict[str, object]]:
        observation, reward, terminated, truncated, info = super().step(action)
        if self._steps == self.bad_step:
            observation = np.ones(4, np.float32)
        return observation, reward, terminated, truncated, info


class Unseeded(Frames):
    """Gives random numbers whatever the seed."""

    def __init__(self) -> None:
        super().__init__("unseeded", spaces.Box(0, 1, (2,), "float64"))
        self._frames = [np.random.default_rng().random(2) for _ in range(4)]


@pytest.fixture
def served() -> Iterator[str]:
    with EnvServer(noop) as server:
        yield server.address


@pytest.mark.parametrize("name", REFERENCES)
def test_every_reference_environment_is_reproducible(name: str) -> None:
    source = REFERENCES[name].source
    check_reproducible(source, lanes_at(source))

    env: Any = load_factory(REFERENCES[name].source)()
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    env.close()


def test_a_run_takes_its_steps_and_compares_first_and_last_observations(served: str) -> None:
    drive = Drive(served, NOOP, {"lane": "grpc"})
    drive.begin()
    drive.warm_up()

    result = drive.run(50, 30.0)
    drive.close()

    assert result["steps"] == 50
    assert result["limited"] is False
    assert result["checked"] == 1 + CHECKED_STEPS + 1
    assert result["payload_bytes"] == 8 + 16
    assert unpacked(str(result["latencies_us"])).shape == (50,)
    assert isinstance(result["tcp_bytes"], int)
    assert result["tcp_bytes"] >= 50 * (8 + 16)


def test_a_run_ends_when_its_time_is_used_up(served: str) -> None:
    drive = Drive(served, NOOP, {})
    drive.begin()

    result = drive.run(10**9, 0.05)
    drive.close()

    assert result["limited"] is True
    assert float(str(result["seconds"])) >= 0.05


def test_an_observation_that_is_not_the_copys_is_no_measurement() -> None:
    with EnvServer(lambda: Off(3)) as server:
        drive = Drive(server.address, NOOP, {})
        drive.begin()
        with pytest.raises(WrongObservation, match="after 2 steps"):
            drive.warm_up()
        drive.close()


def test_a_run_that_ends_wrong_is_no_measurement() -> None:
    with EnvServer(lambda: Off(CHECKED_STEPS + 20)) as server:
        drive = Drive(server.address, NOOP, {})
        drive.begin()
        drive.warm_up()
        with pytest.raises(WrongObservation, match="after 50 steps"):
            drive.run(20, 30.0)
        drive.close()


def test_what_differs_between_two_local_copies_cannot_be_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "unseeded", sys.modules[__name__])

    with pytest.raises(NotReproducible, match="with one seed give other observations"):
        check_reproducible("unseeded:Unseeded", 1)


def test_what_cannot_be_checked_is_stepped_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "unseeded", sys.modules[__name__])
    drive = Drive(None, "unseeded:Unseeded", {}, check=False)
    drive.begin()
    drive.warm_up()
    result = drive.run(10, 30.0)
    drive.close()

    assert (result["steps"], result["checked"]) == (10, 0)


def test_lanes_that_start_again_by_themselves_are_stepped_over_their_ends() -> None:
    vec16 = REFERENCES["vec16"]
    with EnvServer(load_factory(vec16.source)) as server:
        drive = Drive(server.address, vec16.source, {}, lanes=16)
        drive.begin()
        drive.warm_up()
        result = drive.run(200, 60.0)
        drive.close()

    # Every CartPole ends within so many steps; what comes after equals the copy's as well.
    assert result["steps"] == 200
    assert result["checked"] == 1 + CHECKED_STEPS + 1
    assert result["payload_bytes"] == 16 * (8 + 16)


def test_lanes_that_do_not_are_reset_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "still", sys.modules[__name__])

    check_reproducible("still:disabled_poles", 2)


def disabled_poles() -> object:
    mode = gymnasium.vector.AutoresetMode.DISABLED
    return gymnasium.vector.SyncVectorEnv(
        [lambda: gymnasium.make("CartPole-v1")] * 2, autoreset_mode=mode
    )


def test_in_process_the_environment_is_made_here() -> None:
    drive = Drive(None, REFERENCES["image"].source, {})
    drive.begin()
    drive.warm_up()

    result = drive.run(10, 30.0)
    drive.close()

    assert result["payload_bytes"] == 8 + 210 * 160 * 3
    assert image().observation_space.shape == [210, 160, 3]


@pytest.mark.parametrize(
    ("got", "expected", "equal"),
    [
        (np.array([1, np.nan], np.float32), np.array([1, np.nan], np.float32), True),
        (np.array([0.5], np.float32), np.array([0.5]), True),
        (np.array([0.5], np.float32), np.array([[0.5]]), False),
        ({"a": 1, "b": "x"}, {"a": 1, "b": "x"}, True),
        ({"a": 1}, {"a": 1, "b": "x"}, False),
        ((1, "x"), (1, "y"), False),
        (3, np.int64(3), True),
        (3, np.int64(4), False),
    ],
)
def test_observations_are_compared_part_by_part(got: Any, expected: Any, equal: bool) -> None:
    assert same(got, expected) is equal


def test_cpu_time_is_of_a_process_and_its_children() -> None:
    work = "sum(range(3_000_000))"
    code = f"""
import subprocess, sys
{work}
child = subprocess.Popen([sys.executable, "-c", "{work}; print(flush=True); input()"],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print(flush=True)
input()
child.communicate(b"\\n")
"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        seen = cpu_seconds(child.pid)
        child.communicate(b"\n")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)

    whole = sum(after[:2]) - sum(before[:2])
    assert seen is not None
    assert whole * 0.5 < seen <= whole
    assert cpu_seconds(os.getpid()) is not None


def test_memory_is_what_the_process_holds() -> None:
    before = resident_bytes(os.getpid())
    held = np.ones(50_000_000, np.uint8)
    after = resident_bytes(os.getpid())

    assert before is not None
    assert after is not None
    assert 40_000_000 < after - before < 200_000_000
    assert held.size == 50_000_000
