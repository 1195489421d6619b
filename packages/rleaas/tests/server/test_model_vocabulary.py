"""The exported models and the wire have one vocabulary: what is published of both, fits."""

import rleaas
from rleaas.models import Shape

from .conftest import Running


def sent(running: Running, method: str, path: str, body: Shape) -> dict[str, object]:
    given = body.model_dump(mode="json", exclude_none=True)
    return running.ok(running.http.request(method, path, json=given))


# defect: P-5
def test_what_the_models_say_is_what_the_platform_takes_and_answers(platform: Running) -> None:
    made = sent(
        platform,
        "POST",
        "/api/custom-environments",
        rleaas.CreateEnvironmentRequest(name="  E ", domain="finance", source="gym://CartPole-v1"),
    )
    system = rleaas.UpdateEnvironmentSystemRequest(system="SAP")
    sent(platform, "PUT", "/api/environments/E/system", system)
    asked = rleaas.GovernanceConfigRequest(environment_name="E", human_in_the_loop=True)
    sent(platform, "POST", "/governance/configure", asked)
    started = rleaas.TrainingResponse.model_validate(
        sent(platform, "POST", "/train/E", rleaas.TrainingRequest(num_episodes=3))
    )
    assert platform.finished("training", started.job_id) == "awaiting_human_eval"
    finished = platform.ok(platform.http.get(f"/training/{started.job_id}"))
    verdict = rleaas.HumanEvalRequest(
        decision="no", step_scores=[rleaas.HumanEvalStepScore(step_index=1, score="flawed")]
    )
    told = sent(platform, "POST", f"/human-eval/{started.job_id}", verdict)
    governance = platform.ok(platform.http.get("/governance"))["configs"]

    environment = rleaas.Environment.model_validate(made)
    job = rleaas.TrainingJob.model_validate(finished)
    assert (environment.name, environment.domain, type(environment.id)) == ("E", "finance", int)
    assert (started.status, job.status, job.progress) == ("pending", "awaiting_human_eval", 100)
    assert rleaas.HumanEvalReply.model_validate(told).evaluation.step_scores[0].score == "flawed"
    assert isinstance(governance, dict)
    assert rleaas.GovernanceConfig.model_validate(governance["E"]).human_in_the_loop is True


# defect: P-5
def test_types_of_verifiers_have_one_spelling(platform: Running) -> None:
    body = {"name": "v", "type": "rule-based", "logic": {"conditions": ["1 == 1"]}}
    made = rleaas.Verifier.model_validate(
        platform.ok(platform.http.post("/api/verifiers", json=body))
    )
    page = platform.ok(platform.http.get("/api/verifiers", params={"type": "rule-based"}))

    assert made.type == "rule_based"
    assert rleaas.VerifierListResponse.model_validate(page).verifiers[0].id == made.id


def test_an_algorithm_is_the_same_by_default_for_the_model_and_the_call() -> None:
    with rleaas.Client() as client:
        checked = client.TrainingJob.configure_training()
    assert rleaas.TrainingRequest().algorithm == checked["algorithm"]
