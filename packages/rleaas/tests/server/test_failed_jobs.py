"""Jobs that real workers cannot do, and the story that their record and log tell of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .test_survival import Platform

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

REWARD = """
episodes = 0

def reward_fn(reward, info, step):
    global episodes
    episodes += step == 1
    if episodes == 3 and step == 2:
        return reward / info["fuel"]
    return reward
"""
# The returns do not fit into the numbers that networks are made of; the steps are as they were.
OVERFLOWS = """
import gymnasium

class Overflows(gymnasium.Env):
    observation_space = gymnasium.spaces.Discrete(4)
    action_space = gymnasium.spaces.Discrete(2)
    episodes = steps = 0
    def reset(self, *, seed=None, options=None):
        Overflows.episodes += 1
        self.steps = 0
        return 0, {}
    def step(self, action):
        self.steps += 1
        reward = float(action) if Overflows.episodes < 30 else 1e60 * (1 + float(action))
        return 1, reward, self.steps == 8, False, {}
"""


@pytest.fixture
def platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Platform]:
    (tmp_path / "overflowing_of_test.py").write_text(OVERFLOWS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    made = Platform(tmp_path / "data", "--allow-code")
    yield made
    made.end()


def test_a_reward_function_that_raises_is_shown_with_its_line_and_moment(
    platform: Platform,
) -> None:
    job_id = platform.train(
        algorithm="GRPO",
        config={
            "reward_fn": {"type": "path", "value": "fuel.py", "source": REWARD},
            "group_size": 2,
            "num_envs": 1,
        },
    )

    job = platform.finished(job_id)

    assert (job["status"], job["attempt"]) == ("failed", 1)
    assert job["results"]["failure_reason"] == "reward_failed"
    error = job["error"]
    assert "KeyError: 'fuel' (fuel.py, line 8)" in error
    assert "in episode 3 with seed " in error
    assert ", step 2:" in error
    log = platform.log()
    assert error.partition("\n")[0] in log
    assert len(platform.curve(job_id)) == 2
    (failed,) = platform.get("/api/events", job=job_id, kind="failed", after=0)["events"]
    assert 'return reward / info["fuel"]' in failed["data"]["traceback"]


def test_a_training_that_diverges_keeps_its_last_good_checkpoint(platform: Platform) -> None:
    config = {"n_steps": 64, "batch_size": 64, "num_envs": 1, "checkpoint_interval": 10}
    job_id = platform.train(
        "python://overflowing_of_test:Overflows", algorithm="PPO", config=config
    )

    job = platform.finished(job_id)

    assert (job["status"], job["attempt"]) == ("failed", 1), job["attempts"]
    assert job["results"]["failure_reason"] == "training_diverged"
    assert "diverged" in job["error"]
    assert "learning_rate" in job["error"]
    last = max(job["checkpoints"], key=lambda one: one["episode"])
    assert 10 <= last["episode"] < 40
    file = platform.server.http.get(last["download_url"])
    assert (file.status_code, len(file.content)) == (200, last["size_bytes"])
    assert job["error"].partition("\n")[0] in platform.log()


def test_a_worker_over_its_memory_is_ended_and_not_started_again(tmp_path: Path) -> None:
    platform = Platform(tmp_path / "data", "--job-memory", "40")
    try:
        job = platform.finished(platform.train())
    finally:
        platform.end()

    assert (job["status"], job["attempt"], job["restarts"]) == ("failed", 1, 0)
    assert job["results"]["failure_reason"] == "quota_exceeded"
    assert "MiB of memory: its limit is 40 MiB" in job["error"]
    assert job["attempts"][0]["ended"] in job["error"]
    assert job["error"].partition(";")[0] in platform.log()
