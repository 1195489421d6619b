from datetime import UTC, datetime

import pytest
from pydantic import ValidationError
from rleaas.models import (
    EndpointGrant,
    Environment,
    Evaluation,
    EvaluationReport,
    TrainingJob,
)


def test_a_shape_answers_as_attributes_and_as_a_dictionary() -> None:
    env = Environment.model_validate({"id": 3, "name": "E", "status": "READY", "new_field": [1]})

    assert env.status == env["status"] == "ready"
    assert env["new_field"] == [1]
    assert env["tags"] == []
    assert "tags" not in env
    assert env.get("tags", "none sent") == "none sent"
    assert dict(env.items()) == {"id": 3, "name": "E", "status": "ready", "new_field": [1]}
    assert dict(**env) == dict(env.items())


def test_an_unknown_field_is_a_key_error() -> None:
    env = Environment(id=3, name="E", status="ready")

    with pytest.raises(KeyError, match="owner"):
        env["owner"]


def test_a_shape_cannot_be_changed() -> None:
    env = Environment(id=3, name="E", status="ready")

    with pytest.raises(ValidationError, match="frozen"):
        env.status = "failed"


def test_an_environment_without_a_status_is_not_taken_for_ready() -> None:
    with pytest.raises(ValidationError, match="status"):
        Environment.model_validate({"id": 3, "name": "E"})


def test_names_of_other_servers_are_understood() -> None:
    env = Environment.model_validate(
        {"environment_id": 4, "name": "E", "status": "ready", "category": "FinSim"}
    )
    job = TrainingJob.model_validate(
        {"job_id": "j", "status": "running", "agent": "a1", "name": "night run"}
    )
    evaluation = Evaluation.model_validate(
        {"job_id": "e", "status": "pending", "environment": "CartPole"}
    )

    assert (env.id, env.vertical) == (4, "FinSim")
    assert (job.model, job.run_name) == ("a1", "night run")
    assert (evaluation.id, evaluation.environment_name) == ("e", "CartPole")


def test_null_means_not_sent() -> None:
    job = TrainingJob.model_validate(
        {"job_id": "j", "status": "running", "checkpoints": None, "results": None, "progress": None}
    )

    assert (job.checkpoints, job.results.avg_reward, job.progress) == ([], None, 0)


def test_a_time_without_a_zone_is_in_utc() -> None:
    job = TrainingJob.model_validate(
        {"job_id": "j", "status": "running", "started_at": "2026-01-02T03:04:05"}
    )

    assert job.started_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_a_failed_job_gives_the_first_reason_the_server_told() -> None:
    facts = {"job_id": "j", "status": "failed", "message": "job failed"}

    assert TrainingJob.model_validate(facts).reason == "job failed"
    assert (
        TrainingJob.model_validate(facts | {"results": {"error": "env crashed"}}).reason
        == "env crashed"
    )
    assert TrainingJob.model_validate(facts | {"error": "worker died"}).reason == "worker died"


def test_a_grant_does_not_print_its_token() -> None:
    grant = EndpointGrant(
        address="tcp://h:1", token="very-secret", environment_name="E", contract_digest="sha256:0"
    )

    assert "very-secret" not in repr(grant)


def test_a_shape_survives_json() -> None:
    report = EvaluationReport.model_validate(
        {
            "id": "e",
            "status": "completed",
            "success_interval": [0.9, 1.0],
            "episodes": [{"index": 0, "seed": 0, "steps": 5, "reward": 5.0, "outcome": "success"}],
            "created_at": "2026-01-02T03:04:05+00:00",
        }
    )

    assert EvaluationReport.model_validate(report.to_dict()) == report
    assert EvaluationReport.model_validate_json(report.model_dump_json()) == report
