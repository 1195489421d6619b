"""Jobs of real servers and workers that are killed, with SIGKILL, in the middle of the work."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from sqlalchemy import create_engine, text

from .test_draining import Server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CONFIG = {"n_steps": 64, "batch_size": 64, "n_epochs": 2, "num_envs": 1, "checkpoint_interval": 10}
EPISODES = 60


class Platform:
    """A server that is started again on the same data, and what is asked of it."""

    def __init__(self, data: Path, *options: str, database: str | None = None) -> None:
        self.data = data
        self.options = options
        self.database = database or f"sqlite:///{data / 'rleaas.db'}"
        self.servers: list[Server] = []
        self.start()

    def start(self) -> None:
        self.servers.append(Server(self.data, *self.options))

    @property
    def server(self) -> Server:
        return self.servers[-1]

    def get(self, path: str, **params: Any) -> Any:
        reply = self.server.http.get(path, params=params)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def train(self, source: str = "gym://CartPole-v1", **body: Any) -> str:
        made = self.server.http.post(
            "/api/custom-environments", json={"name": "E", "source": source}
        )
        assert made.status_code == 200, made.text
        asked = {"num_episodes": EPISODES, "seed": 3, "config": CONFIG, **body}
        reply = self.server.http.post("/train/E", json=asked)
        assert reply.status_code == 200, reply.text
        return str(reply.json()["job_id"])

    def job(self, job_id: str) -> dict[str, Any]:
        return dict(self.get(f"/training/{job_id}"))

    def curve(self, job_id: str) -> list[dict[str, Any]]:
        points = self.get(f"/api/training/jobs/{job_id}/metrics")["metrics"]
        return [point for point in points if "episode_reward" in point]

    def until(self, look: Callable[[], object], seconds: float = 150.0) -> None:
        end = time.monotonic() + seconds
        while not look():
            assert time.monotonic() < end, self.log()
            time.sleep(0.05)

    def finished(self, job_id: str) -> dict[str, Any]:
        ended = ("completed", "failed", "cancelled")
        self.until(lambda: self.job(job_id)["status"] in ended)
        return self.job(job_id)

    def worker(self, job_id: str) -> psutil.Process:
        engine = create_engine(self.database)
        with engine.connect() as connection:
            found = connection.scalar(
                text("SELECT worker FROM jobs WHERE id = :id"), {"id": job_id}
            )
        engine.dispose()
        return psutil.Process(json.loads(found)["pid"])

    def log(self) -> str:
        return "".join(path.read_text() for path in (self.data / "logs" / "jobs").glob("*.log"))

    def end(self) -> None:
        for server in self.servers:
            server.http.close()
            server.popen.terminate()
            server.popen.communicate(timeout=30)


HANGS = """
import threading
import gymnasium

class Hangs(gymnasium.Env):
    observation_space = gymnasium.spaces.Discrete(4)
    action_space = gymnasium.spaces.Discrete(2)
    steps = 0
    def reset(self, *, seed=None, options=None):
        return 0, {}
    def step(self, action):
        Hangs.steps += 1
        if Hangs.steps == 500:
            threading.Event().wait()
        return 1, 1.0, Hangs.steps % 10 == 0, False, {}
"""


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """One for all: only the first job of a server has to wait until its worker has imported."""
    folder = tmp_path_factory.mktemp("survival")
    (folder / "hanging_of_test.py").write_text(HANGS)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", os.fspath(folder))
        made = Platform(folder / "data")
        yield made
        made.end()


def whole(curve: list[dict[str, Any]]) -> bool:
    """Each episode once, in order, and each with the steps of those before it and its own."""
    steps = 0
    for number, point in enumerate(curve, 1):
        steps += point["episode_length"]
        if (point["episode"], point["timestep"]) != (number, steps):
            return False
    return len(curve) >= EPISODES


def gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_a_worker_that_is_killed_goes_on_from_its_checkpoint_with_a_whole_curve(
    platform: Platform,
) -> None:
    job_id = platform.train()
    platform.until(lambda: len(platform.job(job_id)["checkpoints"]) >= 2)
    worker = platform.worker(job_id)
    token = worker.environ()["RLEAAS_WORKER_TOKEN"]
    worker.kill()
    platform.until(lambda: platform.job(job_id)["attempt"] == 2)
    late = httpx.post(
        f"{platform.server.url}/api/worker/training/{job_id}/reports",
        json={"seq": 10**6, "reports": [{"type": "completed"}]},
        headers={"authorization": f"Bearer {token}"},
        trust_env=False,
    )
    assert (late.status_code, late.json()["code"]) == (409, "attempt_replaced")

    job = platform.finished(job_id)

    assert (job["status"], job["attempt"], job["restarts"]) == ("completed", 2, 1), job["error"]
    first, second = job["attempts"]
    assert first["ended"] == "was killed by SIGKILL"
    assert second["from_checkpoint"] in [one["id"] for one in job["checkpoints"]]
    curve = platform.curve(job_id)
    assert whole(curve), [(point["episode"], point["timestep"]) for point in curve]
    assert curve[-1]["attempt"] == 2
    assert "its worker was killed by SIGKILL; restart 1 of 3" in platform.log()


def test_a_server_that_is_killed_finds_its_jobs_where_they_would_be_without_that(
    platform: Platform,
) -> None:
    job_id = platform.train()
    platform.until(lambda: platform.curve(job_id))
    worker = platform.worker(job_id)
    platform.server.popen.kill()
    platform.server.popen.wait()
    before = worker.cpu_times().user
    # It is at work all the time, and its environment with it.
    platform.until(lambda: worker.cpu_times().user > before + 0.1)
    platform.start()  # at another port

    job = platform.finished(job_id)

    assert (job["status"], job["attempt"], job["restarts"]) == ("completed", 1, 0), job["error"]
    curve = platform.curve(job_id)
    assert whole(curve), [(point["episode"], point["timestep"]) for point in curve]
    assert f"was adopted by the server {platform.server.url}" in platform.log()
    platform.until(lambda: gone(worker))
    created = [one["id"] for one in job["checkpoints"]]
    told = platform.get("/api/events", job=job_id, kind="checkpoint_saved", after=0)["events"]
    saved = [one["data"]["checkpoint_id"] for one in told]
    assert sorted(saved) == sorted(created)


def test_a_server_that_stops_in_order_lets_its_jobs_go_on_later(platform: Platform) -> None:
    job_id = platform.train()
    platform.until(lambda: platform.curve(job_id))
    worker = platform.worker(job_id)
    platform.server.popen.send_signal(signal.SIGTERM)
    assert platform.server.popen.wait(30) == 0
    assert gone(worker)
    platform.start()

    job = platform.finished(job_id)

    assert (job["status"], job["attempt"], job["restarts"]) == ("completed", 2, 0), job["error"]
    assert job["attempts"][0]["ended"] == "was stopped by SIGTERM"
    assert job["attempts"][1]["from_checkpoint"] is not None
    curve = platform.curve(job_id)
    assert whole(curve), [(point["episode"], point["timestep"]) for point in curve]


def test_a_cancel_is_heard_at_once_and_ends_a_worker_that_hangs_in_a_step(
    platform: Platform,
) -> None:
    job_id = platform.train("python://hanging_of_test:Hangs")
    platform.until(lambda: platform.job(job_id)["current_episode"] >= 49)
    worker = platform.worker(job_id)
    began = time.monotonic()
    reply = platform.server.http.post(f"/api/training/jobs/{job_id}/cancel")
    heard = time.monotonic() - began
    platform.until(lambda: gone(worker), 10 - heard)

    assert heard < 2
    assert reply.json()["cancel_requested"] is True
    job = platform.finished(job_id)
    assert job["status"] == "cancelled"
    last = job["checkpoints"][-1]
    file = platform.server.http.get(last["download_url"])
    assert (file.status_code, len(file.content)) == (200, last["size_bytes"])
