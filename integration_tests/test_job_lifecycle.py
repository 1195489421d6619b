from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rlcore import ConflictError, TrainingJobCancelled
from rleaas import Client

if TYPE_CHECKING:
    from rleaas import Blocking, EnvironmentResource, TrainingJobResource
    from rleaas.server.local import LocalServer

    from integration_tests.conftest import Processes

# A worker loads torch before it begins, which takes long on a busy machine.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
PATIENCE = 90

Eventually = Callable[..., None]
Children = Callable[[str], list[int]]


@pytest.fixture(scope="module")
def cartpole(server: LocalServer) -> Iterator[EnvironmentResource[Blocking]]:
    with Client(base_url=server.url) as client:
        yield client.Environment.create(
            "Lifecycle-CartPole", source="gym://CartPole-v1"
        ).wait_until_ready(timeout=40)


@pytest.fixture(scope="module")
def long_job(
    server: LocalServer, cartpole: EnvironmentResource[Blocking], eventually: Eventually
) -> Iterator[TrainingJobResource[Blocking]]:
    """A job that would train for minutes, seen to have finished its first episodes.

    It goes on from test to test, as a worker takes long to begin; the last test ends it.
    """
    with Client(base_url=server.url) as client:
        job = client.TrainingJob.run(
            environment_name=cartpole.name,
            algorithm="PPO",
            config={"episodes": 100_000, "checkpoint_interval": 5},
        )
        eventually(lambda: bool(job.list_metrics()), "the job reports metrics", seconds=PATIENCE)
        yield job
        with suppress(ConflictError):  # it has ended
            job.cancel()


def test_a_killed_environment_is_found_again_by_its_job_and_by_the_next_dial(
    cartpole: EnvironmentResource[Blocking],
    long_job: TrainingJobResource[Blocking],
    children_matching: Children,
    eventually: Eventually,
) -> None:
    hosts = children_matching("rlmesh.serve --env gym://CartPole-v1")
    assert hosts
    for host in hosts:
        os.kill(host, signal.SIGKILL)

    eventually(
        lambda: any("found the environment again" in line for line in long_job.get_logs()),
        "the job goes on",
        seconds=PATIENCE,
    )
    assert long_job.refresh().status == "running"
    with cartpole.connect() as again:
        assert again.reset(seed=3)[0].shape == (4,)
    assert not set(hosts) & set(children_matching("rlmesh.serve --env gym://CartPole-v1"))


def test_a_killed_worker_is_followed_by_another_that_goes_on(
    long_job: TrainingJobResource[Blocking],
    children_matching: Children,
    eventually: Eventually,
) -> None:
    (worker,) = children_matching(long_job.job_id)
    os.kill(worker, signal.SIGKILL)

    def replaced() -> bool:
        found = children_matching(long_job.job_id)
        return bool(found) and worker not in found

    eventually(replaced, "another worker has the job", seconds=PATIENCE)
    assert any("SIGKILL" in line for line in long_job.get_logs())
    eventually(
        lambda: any(point.model_dump().get("attempt") == 2 for point in long_job.list_metrics()),
        "it reports metrics",
        seconds=PATIENCE,
    )


def test_a_cancelled_job_ends_cancelled_and_keeps_what_it_had(
    long_job: TrainingJobResource[Blocking], children_matching: Children, eventually: Eventually
) -> None:
    eventually(lambda: bool(long_job.list_checkpoints()), "there is a checkpoint", seconds=PATIENCE)
    assert children_matching(long_job.job_id)

    long_job.cancel()
    with pytest.raises(TrainingJobCancelled):
        long_job.wait_until_complete(timeout=PATIENCE, poll_interval=0.1)
    assert long_job.status == "cancelled"
    eventually(lambda: not children_matching(long_job.job_id), "its worker is gone")
    for checkpoint in long_job.list_checkpoints():
        assert checkpoint.sha256
        assert checkpoint.size_bytes


def test_a_server_that_is_killed_finds_its_job_going_on(
    processes: Processes, tmp_path: Path, eventually: Eventually
) -> None:
    serve = ("-u", "-m", "rleaas.cli.main", "serve", "--port", "0", "--data", str(tmp_path))

    def start() -> str:
        server = processes.spawn(*serve)
        assert server.stdout is not None
        while not (found := re.search(r"http://\S+", line := server.stdout.readline())):
            assert line, "the server ended"
        return found[0]

    with Client(base_url=start()) as client:
        client.Environment.create("CartPole", source="gym://CartPole-v1").wait_until_ready()
        job = client.TrainingJob.run(
            environment_name="CartPole",
            algorithm="PPO",
            config={"episodes": 100_000, "checkpoint_interval": 5},
        )
        eventually(lambda: bool(job.list_checkpoints()), "there is a checkpoint", seconds=PATIENCE)
        kept = [checkpoint.id for checkpoint in job.list_checkpoints()]

    processes.started[0].kill()
    processes.started[0].wait(timeout=10)
    assert processes.marked(), "its worker and its environment go on"

    with Client(base_url=start()) as client:
        going_on = client.TrainingJob.get(job.job_id)
        assert going_on.status == "running"
        eventually(
            lambda: len(going_on.list_checkpoints()) > len(kept), "it goes on", seconds=PATIENCE
        )
        found = [checkpoint.id for checkpoint in going_on.list_checkpoints()]
        assert kept[-1] in found
        assert client.Environment.get("CartPole").endpoint().address
        going_on.cancel()
