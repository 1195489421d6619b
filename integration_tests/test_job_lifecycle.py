from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rlcore import ConflictError, TrainingJobCancelled, TrainingJobFailed
from rleaas import Client

if TYPE_CHECKING:
    from rleaas import Blocking, EnvironmentResource, TrainingJobResource

    from integration_tests.conftest import Processes

# A worker loads torch before it begins, which takes long on a busy machine.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
PATIENCE = 90

Eventually = Callable[..., None]
Children = Callable[[str], list[int]]


@pytest.fixture
def cartpole(client: Client) -> EnvironmentResource[Blocking]:
    return client.Environment.create(
        "Lifecycle-CartPole", source="gym://CartPole-v1"
    ).wait_until_ready(timeout=40)


@pytest.fixture
def long_job(
    client: Client, cartpole: EnvironmentResource[Blocking], eventually: Eventually
) -> Iterator[TrainingJobResource[Blocking]]:
    """A job that would train for minutes, seen to have finished its first episodes."""
    job = client.TrainingJob.run(
        environment_name=cartpole.name,
        algorithm="PPO",
        config={"episodes": 100_000, "checkpoint_interval": 5},
    )
    eventually(lambda: bool(job.list_metrics()), "the job reports metrics", seconds=PATIENCE)
    yield job
    with suppress(ConflictError):  # it has ended
        job.cancel()


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


def test_a_killed_worker_leaves_a_failed_job_with_the_reason(
    client: Client,
    long_job: TrainingJobResource[Blocking],
    children_matching: Children,
) -> None:
    (worker,) = children_matching(long_job.job_id)
    os.kill(worker, signal.SIGKILL)
    with pytest.raises(TrainingJobFailed, match=r"SIGKILL|signal 9|-9"):
        long_job.wait_until_complete(timeout=PATIENCE, poll_interval=0.1)
    assert client.TrainingJob.get(long_job.job_id).status == "failed"


def test_a_killed_environment_fails_its_job_clearly_and_comes_back_for_the_next_dial(
    cartpole: EnvironmentResource[Blocking],
    long_job: TrainingJobResource[Blocking],
    children_matching: Children,
) -> None:
    hosts = children_matching("rlmesh.serve --env gym://CartPole-v1")
    assert hosts
    for host in hosts:
        os.kill(host, signal.SIGKILL)
    with pytest.raises(TrainingJobFailed) as caught:
        long_job.wait_until_complete(timeout=PATIENCE, poll_interval=0.1)
    assert caught.value.detail

    with cartpole.connect() as again:
        assert again.reset(seed=3)[0].shape == (4,)
    assert not set(hosts) & set(children_matching("rlmesh.serve --env gym://CartPole-v1"))


def test_a_server_that_is_killed_takes_its_processes_along_and_later_owns_up_to_the_orphan(
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
    eventually(lambda: not processes.marked(), "its processes are gone too", seconds=20)

    with Client(base_url=start()) as client:
        orphan = client.TrainingJob.get(job.job_id)
        assert orphan.status == "failed"
        assert "server" in orphan.record.reason
        found = [checkpoint.id for checkpoint in orphan.list_checkpoints()]
        assert found[: len(kept)] == kept
        assert client.Environment.get("CartPole").endpoint().address
