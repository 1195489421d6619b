from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import rlmesh
from rlcore import AccessDenied, EnvironmentURI, IdentityError, TrainingJobFailed
from rlmesh.numpy import RemoteEnv

if TYPE_CHECKING:
    from rleaas import Blocking, Client, EnvironmentResource

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture
def line(
    client: Client, tmp_path: Path, request: pytest.FixtureRequest
) -> EnvironmentResource[Blocking]:
    """An environment whose code reads what it is from `tmp_path/line.json`."""
    (tmp_path / "line.json").write_text(json.dumps({"width": 1.0}))
    return client.Environment.create(
        f"Line-{request.node.name}",
        source="python://worlds:changing",
        kwargs={"path": str(tmp_path / "line.json")},
    ).wait_until_ready(timeout=90)


def change_behind_the_name(
    environment: EnvironmentResource[Blocking], client: Client, folder: Path
) -> None:
    (folder / "line.json").write_text(json.dumps({"width": 2.0, "actions": 3}))
    client.post(f"/api/environments/{environment.name}/stop")


@pytest.fixture
def uri_resolves_here(client: Client) -> Iterator[None]:
    from rleaas.mesh.scope import resolving_with

    with resolving_with(client):
        yield


def test_one_identity_is_carried_by_job_checkpoint_evaluation_and_local_run(
    client: Client,
    line: EnvironmentResource[Blocking],
    quick_ppo: dict[str, object],
    uri_resolves_here: None,
) -> None:
    identity = client.Environment.get(line.name).identity
    assert identity is not None
    job = client.TrainingJob.run(
        environment_name=line.name, algorithm="PPO", config={**quick_ppo, "episodes": 4}
    ).wait_until_complete(timeout=90, poll_interval=0.1)
    checkpoint = job.get_best_checkpoint()
    report = client.Evaluation.run(checkpoint.id, seeds=[1, 2]).wait_until_complete(timeout=90)
    local = rlmesh.run(checkpoint.load(), f"rleaas://{line.name}", seeds=[1, 2])
    assert job.record.identity == identity
    assert checkpoint.identity == identity
    assert report.identity == identity
    assert local.environment == identity
    assert report.checkpoint_sha256 == checkpoint.sha256
    assert [e.reward for e in report.episodes] == [e.reward for e in local.episodes]


def test_a_dial_finds_that_the_environment_is_another_and_names_what_differs(
    client: Client, line: EnvironmentResource[Blocking], tmp_path: Path
) -> None:
    with line.connect() as before:
        assert before.reset(seed=1)[0].shape == (2,)
    change_behind_the_name(line, client, tmp_path)

    with pytest.raises(IdentityError) as caught, line.connect():
        pass
    error = caught.value
    assert (error.environment, error.version) == (line.name, line.version)
    assert error.expected != error.actual
    assert any("action_space" in place for place in error.differences)
    assert any("observation_space" in place for place in error.differences)


def test_a_changed_environment_fails_a_local_run_before_its_first_step(
    client: Client, line: EnvironmentResource[Blocking], tmp_path: Path, uri_resolves_here: None
) -> None:
    change_behind_the_name(line, client, tmp_path)
    with pytest.raises(IdentityError):
        rlmesh.run(rlmesh.RANDOM_SAMPLE, f"rleaas://{line.name}", seeds=[1])


def test_a_changed_environment_fails_a_training_job_with_the_reason(
    client: Client,
    line: EnvironmentResource[Blocking],
    tmp_path: Path,
    quick_ppo: dict[str, object],
) -> None:
    change_behind_the_name(line, client, tmp_path)
    job = client.TrainingJob.run(
        environment_name=line.name, algorithm="PPO", config={**quick_ppo, "episodes": 4}
    )
    with pytest.raises(TrainingJobFailed, match="action_space"):
        job.wait_until_complete(timeout=90, poll_interval=0.1)
    assert job.list_checkpoints() == []


def test_registering_the_change_makes_a_version_with_an_identity_of_its_own(
    client: Client, line: EnvironmentResource[Blocking], tmp_path: Path, uri_resolves_here: None
) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"width": 2.0}))
    second = client.Environment.create(
        line.name, source="python://worlds:changing", kwargs={"path": str(other)}
    ).wait_until_ready(timeout=90)
    assert second.version == (line.version or 0) + 1

    seen: dict[int | None, str] = {}
    for version in (line.version, second.version):
        result = rlmesh.run(
            rlmesh.RANDOM_SAMPLE, str(EnvironmentURI(line.name, version)), seeds=[1]
        )
        assert result.environment is not None
        seen[result.environment.version] = result.environment.contract_digest
    assert set(seen) == {line.version, second.version}
    assert len(set(seen.values())) == 2


def test_the_environment_wants_the_token_that_its_endpoint_came_with(
    client: Client, line: EnvironmentResource[Blocking]
) -> None:
    grant = line.endpoint()
    assert grant.token
    assert grant.token not in repr(grant)
    with pytest.raises(AccessDenied), RemoteEnv(grant.address):
        pass
