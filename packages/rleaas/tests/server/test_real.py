"""The same server with real environment processes and real workers."""

# onnxruntime leaves its types open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

import contextlib
import os
import select
import signal
from pathlib import Path

import numpy as np
import onnxruntime  # type: ignore[import-untyped]  # it has no stubs
import pytest
from rlcore import AccessDenied, Bearer, Endpoint, IdentityError, Secret
from rleaas import Client
from rleaas.models import EndpointGrant, EvaluationReport, TrainingJob
from rlmesh.numpy import RemoteEnv

from .conftest import Running, Start

MODULE = """
import os, threading
import gymnasium

class Env(gymnasium.Env):
    observation_space = gymnasium.spaces.Discrete(4)
    action_space = gymnasium.spaces.Discrete({actions})
    def reset(self, *, seed=None, options=None):
        return 0, {{}}
    def step(self, action):
        return 1, 1.0, True, False, {{}}

class Trouble(Env):
    steps = 0
    def step(self, action):
        Trouble.steps += 1
        if Trouble.steps == 31:
            self.trouble()
        return 1, 1.0, False, False, {{}}

class Crashes(Trouble):
    def trouble(self):
        os._exit(9)

class Hangs(Trouble):
    def trouble(self):
        threading.Event().wait()

gymnasium.register("Solved-v0", entry_point=Env, reward_threshold=1.0)
gymnasium.register("Unsolved-v0", entry_point=Env, reward_threshold=1.5)

def broken():
    raise OSError("no robot is plugged in")
"""


@pytest.fixture
def real(start: Start) -> Running:
    return start(real=True)


def endpoint(platform: Running, name: str) -> Endpoint:
    reply = platform.ok(platform.http.get(f"/api/environments/{name}/endpoint"))
    grant = EndpointGrant.model_validate(reply)
    return Endpoint(
        grant.address,
        credential=Bearer(Secret(grant.token or "")),
        environment_name=grant.environment_name,
        version=grant.version,
        contract_digest=grant.contract_digest,
        contract=grant.contract,
    )


def test_an_environment_is_stepped_through_its_grant(real: Running) -> None:
    real.register()

    env = RemoteEnv(endpoint(real, "CartPole"))

    observation, _ = env.reset(seed=1)
    assert observation in env.observation_space
    _, reward, *_ = env.step(env.action_space.sample())
    assert reward == 1.0
    env.close()


def test_the_operators_own_tls_and_token_are_not_its_environments(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLMESH_SERVE_TLS", "auto")
    monkeypatch.setenv("RLMESH_SERVE_TLS_KEY", "/no/such.key")
    monkeypatch.setenv("RLMESH_TOKEN", "open sesame")
    platform = start(real=True)
    platform.register()
    with RemoteEnv(endpoint(platform, "CartPole")) as env:
        env.reset(seed=1)
    with pytest.raises(AccessDenied):
        RemoteEnv(endpoint(platform, "CartPole").address, token="open sesame")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rate"), [("Solved-v0", 1.0), ("Unsolved-v0", 0.0)])
def test_the_threshold_of_the_specification_says_which_episodes_succeeded(
    real: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, rate: float
) -> None:
    """Each episode of the module has one step, which is worth 1."""
    (tmp_path / "solved_of_test.py").write_text(MODULE.format(actions=2))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    real.register("Known", source=f"gym://solved_of_test:{name}")

    job_id = real.train("Known", num_episodes=3, seed=1, config={"num_envs": 1})
    real.server.state.scheduler.wait_finished("training", job_id, 60)

    job = TrainingJob.model_validate(real.ok(real.http.get(f"/training/{job_id}")))
    assert (job.status, job.results.success_rate) == ("completed", rate)


def test_an_unknown_id_has_failed_with_what_gymnasium_says(real: Running) -> None:
    real.register("Nope", source="gym://Nope-v0")

    reply = real.http.get("/api/environments/Nope/endpoint")

    assert reply.status_code == 409
    assert "Nope-v0" in reply.json()["detail"]
    assert real.ok(real.http.get("/api/environments/Nope"))["status"] == "failed"


def test_a_factory_that_raises_has_failed_with_its_exception(
    real: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "robots_of_test.py").write_text(MODULE.format(actions=2))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    real.register("Robot", source="python://robots_of_test:broken")

    reply = real.http.get("/api/environments/Robot/endpoint")

    assert reply.status_code == 409
    assert "no robot is plugged in" in reply.json()["detail"]


def test_another_environment_behind_the_name_is_an_identity_error_at_the_dial(
    real: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "grid_of_test.py"
    module.write_text(MODULE.format(actions=2))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    real.register("Grid", source="python://grid_of_test:Env")
    RemoteEnv(endpoint(real, "Grid")).close()
    module.write_text(MODULE.format(actions=3))
    real.ok(real.http.post("/api/environments/Grid/stop"))

    with pytest.raises(IdentityError) as caught:
        RemoteEnv(endpoint(real, "Grid"))

    assert caught.value.environment == "Grid"
    assert any("action_space" in path for path in caught.value.differences)


def test_an_environment_process_that_is_killed_comes_back_on_demand(real: Running) -> None:
    others = processes_of("rlmesh.serve")
    real.register()
    before = endpoint(real, "CartPole").address
    (child,) = {*map(int, processes_of("rlmesh.serve"))} - {*map(int, others)}
    gone = os.pidfd_open(child)
    os.kill(child, signal.SIGKILL)
    select.select([gone], [], [], 10)
    os.close(gone)

    env = RemoteEnv(endpoint(real, "CartPole"))

    assert env.address != before
    env.close()


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("maker", "says", "reason"),
    [
        (
            "Crashes",
            "is gone, and was not found again:\n  1. step 31 for",
            "environment_gone",
        ),
        ("Hangs", "did not answer within 2 s in step 31 of", "timeout"),
    ],
)
def test_an_environment_that_dies_or_hangs_in_a_step_fails_its_training_by_name(
    real: Running,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    maker: str,
    says: str,
    reason: str,
) -> None:
    (tmp_path / "trouble_of_test.py").write_text(MODULE.format(actions=2))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    real.register("Trouble", source=f"python://trouble_of_test:{maker}")
    job_id = real.train("Trouble", seed=1, config={"num_envs": 1, "step_timeout": 2})

    real.server.state.scheduler.wait_finished("training", job_id, 60)

    job = TrainingJob.model_validate(real.ok(real.http.get(f"/training/{job_id}")))
    assert job.status == "failed"
    assert job.reason is not None
    assert job.reason.startswith(f"environment 'Trouble@1' {says} the episode with seed ")
    assert "reset()" not in job.reason
    assert job.results.get("failure_reason") == reason


def processes_of(module: str) -> list[str]:
    """Children of this process, which holds the server, that run the module."""
    found: list[str] = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a thread that has just ended
            found += (task / "children").read_text().split()
    return [pid for pid in found if module in Path(f"/proc/{pid}/cmdline").read_text()]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_real_job_trains_saves_is_evaluated_under_one_identity_and_exported(
    real: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real.register()
    job_id = real.train(
        num_episodes=20, seed=1, config={"checkpoint_interval": 10, "n_steps": 64, "batch_size": 64}
    )
    real.server.state.scheduler.wait_finished("training", job_id, 120)
    job = TrainingJob.model_validate(real.ok(real.http.get(f"/training/{job_id}")))
    assert job.status == "completed", job.reason

    made = real.ok(
        real.http.post(
            "/api/evaluations",
            json={"agent_checkpoint_id": job.checkpoints[-1].id, "seeds": [3, 4]},
        )
    )
    evaluation_id = str(made["id"])
    real.server.state.scheduler.wait_finished("evaluation", evaluation_id, 120)
    report = EvaluationReport.model_validate(
        real.ok(real.http.get(f"/api/evaluations/{evaluation_id}/report"))
    )

    assert report.status == "completed", report.reason
    assert [episode.seed for episode in report.episodes] == [3, 4]
    assert (report.asked, report.scored, report.failed) == (2, 2, 0)
    assert report.identity == job.identity == job.checkpoints[-1].identity
    assert report.checkpoint_sha256 == job.checkpoints[-1].sha256

    # The same policy three times: from the platform, from another runtime, and on its card.
    monkeypatch.setenv("RLEAAS_CACHE", str(tmp_path))
    with Client(base_url=real.server.url) as client:
        checkpoint = client.Checkpoint.get(job.checkpoints[-1].id)
        model = checkpoint.load()
        made_file = client.Agent.export(checkpoint, format="onnx", download_to=tmp_path)
    assert checkpoint.has_state
    assert checkpoint.card["family"] == "sb3"
    assert (made_file.checks or {})["same_actions"] == 64
    session = onnxruntime.InferenceSession(str(made_file.downloaded_to))
    name = str(session.get_inputs()[0].name)
    seen = np.random.default_rng(1).normal(size=(20, 4)).astype(np.float32)
    actions = np.asarray(session.run(None, {name: seen})[0])
    assert actions.tolist() == [int(model.predict(one)) for one in seen]
