"""The published training jobs, evaluations, rollouts and figures, call by call."""

# mypy knows the files of this folder under other names than a script beside them does.
# mypy: disable-error-code="import-not-found,untyped-decorator"

import hashlib
import urllib.request
from collections.abc import Callable
from functools import partial

from interop_rleaas_environments import MAIN
from interop_rleaas_world import QUICK_PPO, World, effect, published, raises, told

QUICK = {"episodes": 6, "max_steps_per_episode": 20, "checkpoint_interval": 2, **QUICK_PPO}
LONG = {"episodes": 100_000, "max_steps_per_episode": 500, **QUICK_PPO}


@effect("TrainingClient.configure_training", "a checked config; wrong values are ValueErrors")
def configure_training(world: World) -> None:
    checked = world.client.TrainingJob.configure_training("ppo", 20, config={"gamma": 0.9})
    assert checked == {"algorithm": "PPO", "max_steps": 20, "gamma": 0.9}
    raises(ValueError, lambda: world.client.TrainingJob.configure_training("NOPE"))


@effect("TrainingClient.run", "a job that trains; an unknown environment is refused")
def run(world: World) -> None:
    world.client.AuditLog.configure_governance(MAIN, human_in_the_loop=True)
    job = world.client.TrainingJob.run(MAIN, algorithm="PPO", config=QUICK, name="first")
    assert job.status in ("pending", "running")
    told(job, environment_name=MAIN, algorithm="PPO", run_name="first")
    by_id = world.client.TrainingJob.run(env_id=world.env.id, algorithm="PPO", config=LONG)
    assert by_id.environment_name == MAIN
    raises(
        published.EnvironmentNotFound,
        lambda: world.client.TrainingJob.run("nobody", algorithm="PPO", config=QUICK),
    )
    asked = partial(world.client.TrainingJob.run, MAIN, algorithm="PPO", config=QUICK)
    raises(published.VerifierNotFound, lambda: asked(verifier_ids=["nobody"]))
    missing = raises(published.RLEaaSAPIError, lambda: asked(scenario_suite_id="nowhere"))
    assert missing.status_code == 404
    world.kept.update(job=job, long=by_id)


@effect("TrainingJobResource.set_webhook", "the URL hears of the job")
def set_webhook(world: World) -> None:
    url = f"{world.neighbours.url}/hook"
    told(world.job.set_webhook(url, ["job_complete"]), status="registered", job_id=world.job.id)


@effect("TrainingJobResource.cancel", "the job ends as cancelled")
def cancel(world: World) -> None:
    assert world.long.cancel()["job_id"] == world.long.id
    assert world.long.wait_until_complete(timeout=30, poll_interval=0.1).status == "cancelled"


@effect("TrainingClient.cancel", "the same by its id; cancelled twice is cancelled")
def client_cancel(world: World) -> None:
    told(world.client.TrainingJob.cancel(world.long.id), status="cancelled")
    raises(published.TrainingJobNotFound, lambda: world.client.TrainingJob.cancel("job_none"))


@effect(
    "TrainingJobResource.wait_until_complete",
    "returns when the job is over, with progress on the way: here, when people are to judge it",
    "as promised; errors on the way cannot be cured: swallowed (F-2)",
)
def wait_until_complete(world: World) -> None:
    seen: list[dict[str, object]] = []
    done = world.job.wait_until_complete(timeout=90, poll_interval=0.1, on_progress=seen.append)
    assert (done.status, done.progress) == ("awaiting_human_eval", 100)
    *before, last = (one["status"] for one in seen)
    assert last == "awaiting_human_eval"
    assert set(before) <= {"pending", "running"}


@effect("TrainingJobResource.submit_human_eval", "the job is complete with it; the webhook hears")
def submit_human_eval(world: World) -> None:
    scores = [{"step_index": 0, "score": "flawed"}]
    reply = world.job.submit_human_eval("yes", "fine", scores)
    told(reply, success=True, training_completed=True)
    told(reply["evaluation"], decision="yes", comments="fine", step_scores=scores)
    assert world.job.wait_until_complete(timeout=5).status == "completed"
    assert world.neighbours.wait_for("job_complete")["job_id"] == world.job.id
    assert raises(published.RLEaaSAPIError, world.job.cancel).status_code == 409


@effect("TrainingClient.get", "the job; TrainingJobNotFound where there is none")
def get(world: World) -> None:
    told(world.client.TrainingJob.get(world.job.id), status="completed", run_name="first")
    raises(published.TrainingJobNotFound, lambda: world.client.TrainingJob.get("job_none"))


@effect("TrainingClient.list", "every job")
def list_jobs(world: World) -> None:
    found = [one.id for one in world.client.TrainingJob.list()]
    assert found == [world.long.id, world.job.id]


@effect(
    "TrainingJobResource.get_metrics",
    "status, progress, rewards and tier from the job's results",
    "as promised; current_episode cannot be cured: it is the progress (F-6)",
)
def get_metrics(world: World) -> None:
    metrics = world.job.get_metrics()
    told(metrics, status="completed", progress=100, num_episodes=6, current_tier=None)
    assert isinstance(metrics["avg_reward"], float)
    assert world.client.get(f"/training/{world.job.id}")["current_episode"] == 6


@effect("TrainingJobResource.list_checkpoints", "those that were saved, with their scores")
def list_checkpoints(world: World) -> None:
    found = world.job.list_checkpoints()
    episodes = [one["episode"] for one in found]
    # One that is due waits for the end of the update under way.
    assert len(found) >= 2
    assert episodes == sorted(set(episodes))
    assert episodes[-1] == QUICK["episodes"]
    for one in found:
        assert {"id", "label", "success_rate", "avg_reward", "created_at"} <= set(one)
        assert isinstance(one["avg_reward"], float)
    world.kept.update(first=found[0]["id"], last=found[-1]["id"])


@effect(
    "TrainingJobResource.get_best_checkpoint",
    "the one with the highest score",
    "as promised; unscored ones count as 0, which cannot be cured (F-9)",
)
def get_best_checkpoint(world: World) -> None:
    scores = [one["avg_reward"] for one in world.job.list_checkpoints()]
    assert world.job.get_best_checkpoint()["avg_reward"] == max(scores)


@effect("TrainingJobResource.get_logs", "the lines, oldest first; the last few with a limit")
def get_logs(world: World) -> None:
    lines = world.job.get_logs()
    assert lines
    assert world.job.get_logs(limit=1) == lines[-1:]


@effect("TrainingJobResource.stream_logs", "every line once, to the end")
def stream_logs(world: World) -> None:
    assert list(world.job.stream_logs(poll_interval=0.1, timeout=20)) == world.job.get_logs()


@effect("TrainingJobResource.list_rollouts", "the rollouts that are stored of the job")
def list_rollouts(world: World) -> None:
    episode = {
        "environment_name": MAIN,
        "job_id": world.job.id,
        "steps": [{"step": 0, "reward": 2}],
    }
    stored = world.client.post("/api/rollouts", json=episode)
    (found,) = world.job.list_rollouts()
    told(found, id=stored["id"], total_reward=2.0, job_id=world.job.id)
    world.kept.update(stored=stored["id"])


@effect(
    "EvaluationClient.run",
    "an evaluation of the checkpoint, on the environment it knows",
)
def evaluate(world: World) -> None:
    job = world.client.Evaluation.run(world.first, "", name="one")
    assert job.id
    told(job, name="one", environment=MAIN)
    error = raises(published.RLEaaSAPIError, lambda: world.client.Evaluation.run("ckpt_none", ""))
    assert error.status_code == 404
    for missing in (("suite_none", None), ("", ["verifier_none"])):
        error = raises(
            published.RLEaaSError,
            lambda missing=missing: world.client.Evaluation.run(world.first, *missing),
        )
        assert "not found" in str(error)
    # It is played beside the first one, and compared with it later.
    world.kept.update(evaluation=job, beside=world.client.Evaluation.run(world.last, ""))


@effect(
    "EvaluationJobResource.wait_until_complete",
    "the report, when it is complete",
    "as promised; errors on the way cannot be cured: swallowed (F-2)",
)
def wait_for_evaluation(world: World) -> None:
    report = world.evaluation.wait_until_complete(timeout=60, poll_interval=0.1)
    told(report, status="completed", asked=20, scored=20, environment=MAIN)
    assert isinstance(report["overall_score"], float)
    assert len(report["rollout_ids"]) == 20


@effect("EvaluationClient.get_report", "the report of this evaluation")
def get_report(world: World) -> None:
    report = world.client.Evaluation.get_report(world.evaluation.id, MAIN)
    told(report, id=world.evaluation.id, agent_checkpoint_id=world.first)
    assert {"pass_rate", "verifier_breakdown", "rollout_ids", "scenario_results"} <= set(report)


@effect("EvaluationClient.list_rollouts", "those of the environment, and those of all")
def list_all_rollouts(world: World) -> None:
    here = world.client.Evaluation.list_rollouts(MAIN)
    assert len([one for one in here if one["job_id"] == world.evaluation.id]) == 20
    assert {"id", "status", "score", "scenario_id", "created_at"} <= set(here[0])
    everywhere = {one["id"] for one in world.client.Evaluation.list_rollouts()}
    assert {one["id"] for one in here} <= everywhere


@effect("EvaluationClient.get_rollout", "the rollout with its steps")
def get_rollout(world: World) -> None:
    found = world.client.Evaluation.get_rollout(world.stored, MAIN)
    told(found, total_reward=2.0, score=2.0, environment_name=MAIN)
    assert found["steps"] == [{"step": 0, "reward": 2}]


@effect("EvaluationClient.compare", "two checkpoints on the same seeds: delta and winner")
def compare(world: World) -> None:
    pair = [world.first, world.last]
    world.beside.wait_until_complete(timeout=60, poll_interval=0.1)
    found = world.client.Evaluation.compare(pair, "")
    told(found, environment_name=MAIN, agent_checkpoints=[world.first, world.last])
    baseline, trained = found["baseline"], found["trained"]
    assert found["delta"] == trained["overall_score"] - baseline["overall_score"]
    assert found["winner"] in ("baseline", "trained", "tie")
    assert len(found["scenario_breakdown"]) == 20
    world.kept.update(pair=(baseline["id"], trained["id"]))


@effect("EvaluationClient.get_rollout_comparison", "the same of two that were played")
def get_rollout_comparison(world: World) -> None:
    found = world.client.Evaluation.get_rollout_comparison(MAIN, *world.pair)
    told(found, environment_name=MAIN)
    assert len(found["per_scenario_diff"]) == 20
    same = world.client.Evaluation.compare(
        [], "", environment_name=MAIN, baseline_id=world.pair[0], trained_id=world.pair[1]
    )
    assert same["delta"] == found["delta"]


@effect("EvaluationClient.export_audit_report", "a file with exactly the digest that is told")
def export_audit_report(world: World) -> None:
    told_of = world.client.Evaluation.export_audit_report(world.evaluation.id, signature=True)
    content = fetched(world, told_of["report_url"])
    assert hashlib.sha256(content).hexdigest() == told_of["sha256"]
    assert told_of["signature"]
    table = world.client.Evaluation.export_audit_report(world.evaluation.id, format="csv")
    assert fetched(world, table["report_url"]).startswith(b"evaluation_id,")
    page = world.client.Evaluation.export_audit_report(world.evaluation.id, format="pdf")
    assert fetched(world, page["report_url"]).startswith(b"%PDF")


@effect("AgentsClient.dry_run", "episodes of the agent's policy, kept as a dry run")
def dry_run(world: World) -> None:
    world.client.Agent.configure(world.agent.id, model_ref=f"checkpoint://{world.last}")
    made = world.client.Agent.dry_run(world.agent.id, str(world.env.id), episodes=2)
    told(made, agent_id=world.agent.id, episodes=2, environment=MAIN)


@effect("AgentsClient.list_dry_runs", "the dry runs, with what came of them")
def list_dry_runs(world: World) -> None:
    (found,) = world.client.Agent.list_dry_runs(world.agent.id)
    assert found["evaluation_id"]
    world.kept.update(dry=found["evaluation_id"])


@effect("AgentResource.dry_run", "episodes of the agent's policy")
def handle_dry_run(world: World) -> None:
    told(world.agent.dry_run(MAIN, episodes=1), episodes=1, environment=MAIN)


@effect("AgentResource.list_dry_runs", "its dry runs, newest first")
def handle_list_dry_runs(world: World) -> None:
    assert [one["episodes"] for one in world.agent.list_dry_runs()] == [1, 2]


@effect(
    "AgentsClient.export",
    "the checkpoint's file with the digest that is told; a wrong form is refused",
    "as promised; download_to cannot be cured: nothing is downloaded (A-2)",
)
def export(world: World) -> None:
    made = world.client.Agent.export(world.last, agent_id=world.agent.id, format="pytorch")
    told(made, checkpoint_id=world.last, format="pytorch", agent_id=world.agent.id)
    assert hashlib.sha256(fetched(world, made["download_url"])).hexdigest() == made["sha256"]
    assert made["metadata"]["environment_name"] == MAIN
    error = raises(
        published.RLEaaSAPIError, lambda: world.client.Agent.export(world.last, format="floppy")
    )
    assert error.status_code == 422


@effect(
    "AgentResource.export",
    "the checkpoint's file, without what was not asked for",
    "as promised; download_to cannot be cured: nothing is downloaded (A-2)",
)
def handle_export(world: World) -> None:
    made = world.agent.export(world.last, include_metadata=False, include_audit_hash=False)
    assert "metadata" not in made
    assert "sha256" not in made
    assert fetched(world, made["download_url"])


@effect("AgentsClient.delete", "it is gone")
def delete_agent(world: World) -> None:
    told(world.client.Agent.delete(world.agent.id), deleted=True, agent_id=world.agent.id)
    raises(KeyError, lambda: world.client.Agent.get(world.agent.id))


@effect("MetricsClient.get_kpis", "figures over the stored rollouts; unknown ones are null")
def get_kpis(world: World) -> None:
    found = world.client.Metrics.get_kpis(MAIN, refresh=True)
    told(found, environment_name=MAIN, aml_compliance_rate=None)
    assert isinstance(found["avg_reward"], float)
    assert world.client.Metrics.get_kpis()["episodes"] >= found["episodes"]


@effect("MetricsClient.get_kpi_history", "an entry for each evaluation of a checkpoint, in pages")
def get_kpi_history(world: World) -> None:
    history = world.client.Metrics.get_kpi_history(MAIN)
    assert {world.first, world.last} <= {one["checkpoint"] for one in history}
    assert {"timestamp", "avg_reward", "pass_rate"} <= set(history[0])
    assert world.client.Metrics.get_kpi_history(MAIN, limit=1, offset=1) == history[1:2]


@effect("MetricsClient.clear_kpi_history", "the history is empty")
def clear_kpi_history(world: World) -> None:
    told(world.client.Metrics.clear_kpi_history(), status="cleared")
    assert world.client.Metrics.get_kpi_history() == []


@effect("MetricsClient.list_agent_tools", "what the observability agent can be asked")
def list_agent_tools(world: World) -> None:
    found = world.client.Metrics.list_agent_tools()
    assert {"name", "description", "parameters"} <= set(found[0])
    assert "get_environment_kpis" in [one["name"] for one in found]


@effect("MetricsClient.invoke_agent_tool", "its answer; an unknown tool is refused")
def invoke_agent_tool(world: World) -> None:
    reply = world.client.Metrics.invoke_agent_tool("list_environments")
    assert MAIN in [one["name"] for one in reply["result"]["environments"]]
    error = raises(
        published.RLEaaSAPIError, lambda: world.client.Metrics.invoke_agent_tool("nothing")
    )
    assert error.status_code == 400


@effect("MetricsClient.agent_health", "how the platform is, with the environment that failed")
def agent_health(world: World) -> None:
    health = world.client.Metrics.agent_health()
    told(health, status="degraded")
    assert any("broken" in one for one in health["warnings"])


def refused(call: Callable[[], object]) -> None:
    """Require that the server says by name what it cannot do."""
    error = raises(published.RLEaaSAPIError, call)
    assert error.status_code == 422
    assert "not available" in error.detail or "not built yet" in error.detail


def fetched(world: World, place: str) -> bytes:
    """The bytes behind a URL that the server told."""
    asked = urllib.request.Request(
        world.url + place, headers={"Authorization": f"Bearer {world.key}"}
    )
    with urllib.request.urlopen(asked) as reply:
        content: bytes = reply.read()
    return content
