"""Jobs on this machine and in a Ray cluster of two nodes: the same conversations, the same ends."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest
from rlcore import TrainingJobFailed
from rleaas import Client
from rleaas._drivers.blocking import Blocking
from rleaas.resources.training_handle import TrainingJobResource
from rleaas.server.jobs.ray_cluster import RayCluster
from rleaas.server.local import LocalServer
from rleaas.server.settings import ServerSettings
from rleaas.server.state import ServerState

from .conftest import RayNodes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

CONFIG = {"num_envs": 2, "n_steps": 32, "batch_size": 64, "n_epochs": 1, "seed": 7}


@pytest.fixture(scope="module")
def local_client(tmp_path_factory: pytest.TempPathFactory) -> Generator[Client]:
    yield from serve(None, tmp_path_factory.mktemp("local"))


@pytest.fixture(scope="module")
def second_client(nodes: RayNodes, tmp_path_factory: pytest.TempPathFactory) -> Generator[Client]:
    """Its jobs ask for the second node, which is the one that can be lost."""
    cluster = RayCluster(
        address=nodes.dashboard, cpus=0.5, python=sys.executable, resources={"second": 0.5}
    )
    yield from serve(cluster, tmp_path_factory.mktemp("second"))


@pytest.fixture(scope="module")
def small_client(nodes: RayNodes, tmp_path_factory: pytest.TempPathFactory) -> Generator[Client]:
    """Its jobs may use 1 GiB of memory: a third of that is what a training needs."""
    cluster = RayCluster(address=nodes.dashboard, cpus=0.5, python=sys.executable)
    yield from serve(cluster, tmp_path_factory.mktemp("small"), memory=2**30)


@pytest.fixture(params=["local_client", "ray_client"])
def client(request: pytest.FixtureRequest) -> Client:
    found: Client = request.getfixturevalue(str(request.param))
    return found


@pytest.fixture(scope="module")
def ray_client(nodes: RayNodes, tmp_path_factory: pytest.TempPathFactory) -> Generator[Client]:
    yield from serve(
        RayCluster(address=nodes.dashboard, cpus=0.5, python=sys.executable),
        tmp_path_factory.mktemp("any"),
    )


def serve(
    cluster: RayCluster | None, data: Path, *, memory: int | None = None
) -> Generator[Client]:
    def made(settings: ServerSettings) -> ServerState:
        return ServerState(replace(settings, ray=cluster, job_memory_bytes=memory))

    with LocalServer(data, make_state=made) as server, Client(base_url=server.url) as client:
        client.Environment.create("CartPole", source="gym://CartPole-v1").wait_until_ready()
        yield client


def begin(client: Client, episodes: int, **config: object) -> TrainingJobResource[Blocking]:
    return client.TrainingJob.run(
        "CartPole",
        algorithm="PPO",
        config={"episodes": episodes, **CONFIG, **config},
    )


def curve(job: TrainingJobResource[Blocking]) -> list[tuple[int, float]]:
    return [
        (point.episode, point.episode_reward)
        for point in job.list_metrics()
        if point.episode_reward is not None
    ]


def wait_for(job: TrainingJobResource[Blocking], kind: str) -> dict[str, object]:
    for event in job.events(kinds=[kind], timeout=120):
        return dict(event.data)
    raise AssertionError(f"{job.id} ended without {kind!r}: {job.refresh().error}")


def test_a_job_trains_and_leaves_its_curve_and_a_checkpoint_that_plays(client: Client) -> None:
    job = begin(client, 12).wait_until_complete(timeout=180)

    assert [episode for episode, _ in curve(job)] == list(range(1, 13))
    best = job.get_best_checkpoint()
    assert best.load() is not None
    assert any("PPO" in line for line in job.get_logs())


def test_a_cancelled_job_keeps_a_whole_checkpoint(client: Client) -> None:
    job = begin(client, 1_000_000, checkpoint_interval=5)
    wait_for(job, "checkpoint_saved")

    job.cancel()

    with pytest.raises(Exception, match="cancelled"):
        job.wait_until_complete(timeout=60)
    for checkpoint in job.list_checkpoints():
        assert checkpoint.load() is not None


def test_a_killed_worker_goes_on_from_its_last_checkpoint_without_a_gap(client: Client) -> None:
    job = begin(client, 400, checkpoint_interval=20)
    pid = wait_for(job, "started")["pid"]
    wait_for(job, "checkpoint_saved")
    assert isinstance(pid, int)

    os.kill(pid, signal.SIGKILL)

    job.wait_until_complete(timeout=200)
    assert [episode for episode, _ in curve(job)] == list(range(1, 401))


def test_a_job_whose_node_is_lost_goes_on_from_its_last_checkpoint_elsewhere(
    second_client: Client, nodes: RayNodes
) -> None:
    job = begin(second_client, 400, checkpoint_interval=20)
    wait_for(job, "checkpoint_saved")

    nodes.lose_second()
    nodes.add_second()

    job.wait_until_complete(timeout=220)
    assert [episode for episode, _ in curve(job)] == list(range(1, 401))
    assert any("attempt 1" in line and "actor died" in line for line in job.get_logs())


def test_sessions_in_ray_actors_give_the_curve_of_sessions_in_the_worker(
    ray_client: Client,
) -> None:
    near = begin(ray_client, 12).wait_until_complete(timeout=180)
    far = begin(ray_client, 12, rollout_workers=2).wait_until_complete(timeout=180)

    assert curve(far) == curve(near)


HOARDS = """
hoard = []
def reward(reward):
    hoard.append(b"x" * 50 * 2**20)
    return reward
"""
SPAWNS = """
import subprocess
def reward(reward, step):
    if step < 3:
        subprocess.Popen(["sleep", "60"])
    return reward
"""


@pytest.mark.parametrize(
    ("source", "config", "said"),
    [
        (HOARDS, {}, "more memory than its limit, 1024 MiB"),
        (SPAWNS, {"compute_quota": {"max_processes": 2}}, "more processes than its limit, 2"),
    ],
)
def test_a_job_in_the_cluster_that_passes_a_limit_has_failed_with_it(
    small_client: Client, source: str, config: dict[str, object], said: str
) -> None:
    job = begin(small_client, 10_000, reward_fn={"inline": source}, **config)

    with pytest.raises(TrainingJobFailed) as caught:
        job.wait_until_complete(timeout=120)

    assert said in str(caught.value)
    record = job.refresh().record
    (attempt,) = record.attempts
    assert said in str(attempt["ended"])
    assert record.results["failure_reason"] == "quota_exceeded"
