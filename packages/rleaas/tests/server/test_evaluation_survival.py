"""Evaluations whose worker is killed, whose checkpoint or whose environment was altered."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from rleaas.models import EvaluationReport
from rleaas.server.store import jobs

from .conftest import Running, Start

WORLD = """
import os, time
import gymnasium

class Env(gymnasium.Env):
    observation_space = gymnasium.spaces.Discrete(4)
    action_space = gymnasium.spaces.Discrete({actions})
    def reset(self, *, seed=None, options=None):
        self.seed, self.left = seed, 4
        return 0, {{}}
    def step(self, action):
        self.left -= 1
        time.sleep(0.02)
        if not self.left:
            with open(os.environ["PLAYED_OF_TEST"], "a") as played:
                played.write(f"{{self.seed}}\\n")
        return 1, float(self.seed), self.left == 0, False, {{}}
"""


@pytest.fixture
def real(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Running:
    (tmp_path / "world_of_test.py").write_text(WORLD.format(actions=2))
    monkeypatch.setenv("PYTHONPATH", os.fspath(tmp_path))
    monkeypatch.setenv("PLAYED_OF_TEST", os.fspath(tmp_path / "played"))
    return start(real=True)


def begun(platform: Running, **body: object) -> str:
    return str(platform.ok(platform.http.post("/api/evaluations", json=body))["id"])


def report_of(platform: Running, evaluation_id: str) -> EvaluationReport:
    reply = platform.http.get(f"/api/evaluations/{evaluation_id}/report")
    return EvaluationReport.model_validate(platform.ok(reply))


def until(look: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < end
        time.sleep(0.02)


def worker_of(platform: Running, evaluation_id: str) -> psutil.Process:
    with platform.server.state.database.read(1) as session:
        handle = jobs.find(session, jobs.EVALUATION, evaluation_id).worker
    assert isinstance(handle, str)
    found: dict[str, Any] = json.loads(handle)
    return psutil.Process(int(found["pid"]))


def ended(platform: Running, evaluation_id: str) -> str:
    row = platform.server.state.scheduler.wait_finished("evaluation", evaluation_id, 150)
    return row.status if row.error is None else f"{row.status}: {row.error}"


@pytest.mark.slow
def test_a_worker_that_is_killed_resumes_and_plays_no_finished_episode_twice(
    real: Running, tmp_path: Path
) -> None:
    real.register("World", source="python://world_of_test:Env")
    seeds = list(range(40))
    evaluation = begun(real, agent="random", environment_name="World", seeds=seeds)
    until(lambda: len(report_of(real, evaluation).episodes) >= 5)
    worker_of(real, evaluation).kill()
    finished = {str(one.seed) for one in report_of(real, evaluation).episodes}

    assert ended(real, evaluation) == "completed"

    report = report_of(real, evaluation)
    assert (report.attempt, report.restarts, report.attempts[0]["ended"]) == (
        2,
        1,
        "was killed by SIGKILL",
    )
    assert [one.seed for one in report.episodes] == seeds
    assert (report.asked, report.scored, report.failed) == (40, 40, 0)
    # The environment itself saw the end of each; of the one that was being played, maybe twice:
    # the worker may be killed when its last step is done, and not yet kept.
    played = Counter((tmp_path / "played").read_text().split())
    assert set(played) == set(map(str, seeds))
    assert {played[seed] for seed in finished} == {1}
    assert played.total() <= len(seeds) + 1
    assert report.mean_return == pytest.approx(4 * sum(seeds) / 40)


def trained(platform: Running) -> str:
    platform.register("World", source="python://world_of_test:Env")
    job = platform.train("World", algorithm="A2C", num_episodes=5, max_steps=10, seed=1)
    row = platform.server.state.scheduler.wait_finished("training", job, 120)
    assert row.status == "completed", row.error
    found = platform.ok(platform.http.get(f"/api/training/jobs/{job}"))
    return str(platform.listed(found, "checkpoints")[-1]["id"])


def without_numbers(platform: Running, evaluation: str) -> EvaluationReport:
    report = report_of(platform, evaluation)
    assert (report.status, report.scored, report.episodes) == ("failed", 0, [])
    assert {report.overall_score, report.pass_rate, report.mean_return} == {None}
    assert report["complete"] is False
    return report


@pytest.mark.slow
def test_a_checkpoint_that_was_altered_on_disk_gives_no_number_and_says_so(real: Running) -> None:
    checkpoint = trained(real)
    path = real.file_of(checkpoint)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.chmod(0o600)
    path.write_bytes(bytes(content))

    evaluation = begun(real, agent_checkpoint_id=checkpoint, seeds=[0, 1])

    assert ended(real, evaluation).startswith("failed: ")
    report = without_numbers(real, evaluation)
    assert report.error is not None
    assert "checkpoint" in report.error.lower()
    record = real.ok(real.http.get(f"/api/evaluations/{evaluation}"))
    assert record["error"] == report.error
    assert real.http.get(f"/api/checkpoints/{checkpoint}/file").status_code >= 400


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_an_environment_whose_contract_changed_since_training_is_an_identity_error(
    real: Running, tmp_path: Path
) -> None:
    checkpoint = trained(real)
    real.ok(real.http.post("/api/environments/World/stop"))
    (tmp_path / "world_of_test.py").write_text(WORLD.format(actions=3))

    evaluation = begun(real, agent_checkpoint_id=checkpoint, seeds=[0, 1])

    said = ended(real, evaluation)
    report = without_numbers(real, evaluation)
    assert said == f"failed: {report.error}"
    assert "contract" in said or "served" in said, said
