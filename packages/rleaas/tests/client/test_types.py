"""Checked by pyright and mypy: who holds a method decides its colour. Running it proves little."""

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any, assert_type

import rlmesh.numpy
from rleaas import (
    AsyncClient,
    Awaiting,
    Blocking,
    CheckpointResource,
    Client,
    EndpointGrant,
    EnvironmentResource,
    EvaluationJobResource,
    EvaluationReport,
    TrainingJobResource,
)
from rleaas.models import PlatformInfo


def blocking(client: Client) -> None:
    assert_type(client.ping(), PlatformInfo)
    env = client.Environment.get("E")
    assert_type(env, EnvironmentResource[Blocking])
    assert_type(client.Environment.list(), list[EnvironmentResource[Blocking]])
    assert_type(env.wait_until_ready(), EnvironmentResource[Blocking])
    assert_type(env.endpoint(), EndpointGrant)
    assert_type(env.connect(), rlmesh.numpy.RemoteEnv)
    job = client.TrainingJob.run(env)
    assert_type(job, TrainingJobResource[Blocking])
    assert_type(job.stream_logs(), Generator[str, None, None])
    best = job.get_best_checkpoint()
    assert_type(best, CheckpointResource[Blocking])
    assert_type(best.load(), rlmesh.numpy.Model[Any, Any])
    evaluation = client.Evaluation.run(best)
    assert_type(evaluation, EvaluationJobResource[Blocking])
    assert_type(evaluation.wait_until_complete(), EvaluationReport)
    client.Environment.get(name="E")  # type: ignore[call-arg]  # it has none


async def awaiting(client: AsyncClient) -> None:
    assert_type(client.ping, Callable[[], Coroutine[Any, Any, PlatformInfo]])
    env = await client.Environment.get("E")
    assert_type(env, EnvironmentResource[Awaiting])
    assert_type(await client.Environment.list(), list[EnvironmentResource[Awaiting]])
    assert_type(await env.wait_until_ready(), EnvironmentResource[Awaiting])
    assert_type(await env.endpoint(), EndpointGrant)
    assert_type(await env.connect(), rlmesh.numpy.RemoteEnv)
    job = await client.TrainingJob.run(env)
    assert_type(job, TrainingJobResource[Awaiting])
    assert_type(job.stream_logs(), AsyncGenerator[str, None])
    best = await job.get_best_checkpoint()
    assert_type(best, CheckpointResource[Awaiting])
    assert_type(await best.load(), rlmesh.numpy.Model[Any, Any])
    evaluation = await client.Evaluation.run(best)
    assert_type(evaluation, EvaluationJobResource[Awaiting])
    assert_type(await evaluation.wait_until_complete(), EvaluationReport)


def test_both_clients_have_the_same_resources() -> None:
    resources = [
        {name: type(value).__name__ for name, value in vars(client).items() if name[0].isupper()}
        for client in (Client(), AsyncClient())
    ]

    assert resources[0] == resources[1]
    assert {
        "AuditLog",
        "Checkpoint",
        "Environment",
        "Evaluation",
        "Keys",
        "Organisation",
        "TrainingJob",
    } <= set(resources[0])
