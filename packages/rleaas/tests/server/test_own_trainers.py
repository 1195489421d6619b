"""GRPO and A3C as jobs of a real server, with real workers, one of which is killed."""

# onnxruntime and gymnasium leave their types open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

import json
import os
import signal
import time
from pathlib import Path

import numpy as np
import onnxruntime  # type: ignore[import-untyped]  # it has no stubs
import pytest
import rlmesh
from rleaas import Client
from rleaas.server.store.tables import JobRow
from rleaas.training.exports.order import ExportOrder
from rleaas.training.exports.worker import export

from .conftest import Running, Start


def kill_worker(platform: Running, client: Client, job: str) -> None:
    """Kill the job's worker as soon as there is a checkpoint to go on from."""
    while not client.TrainingJob.get(job).list_checkpoints():
        time.sleep(0.02)
    with platform.server.state.database.read(1) as session:
        row = session.get_one(JobRow, job)
    os.kill(json.loads(row.worker or "")["pid"], signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_jobs_of_our_own_trainers_finish_play_are_exported_and_survive_a_kill(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLEAAS_CACHE", str(tmp_path / "cache"))
    platform = start(real=True)
    with Client(base_url=platform.server.url) as client:
        client.Environment.create("Pole", source="gym://CartPole-v1").wait_until_ready(
            timeout=60, progress=False
        )

        def begin(algorithm: str, episodes: int, **config: object) -> str:
            config = {"checkpoint_interval": 32, **config}
            return client.TrainingJob.run(
                "Pole", algorithm=algorithm, num_episodes=episodes, seed=3, config=config
            ).id

        killed, whole = begin("GRPO", 96, num_envs=4), begin("GRPO", 96, num_envs=4)
        kill_worker(platform, client, killed)
        a3c = begin("A3C", 60, n_workers=2, num_envs=2)
        jobs = {
            job: client.TrainingJob.get(job).wait_until_complete(timeout=250)
            for job in (killed, whole, a3c)
        }

        def curve(job: str) -> list[tuple[object, ...]]:
            points = jobs[job].list_metrics()
            told = [one for one in points if one.episode_reward is not None]
            return [(one.episode, one.timestep, one.episode_reward) for one in told]

        records = [platform.ok(platform.http.get(f"/training/{job}")) for job in jobs]
        assert [record["restarts"] for record in records] == [1, 0, 0]
        assert len(curve(whole)) == 96
        assert curve(killed) == curve(whole)
        assert len(curve(a3c)) == 60

        for job, family in ((killed, "grpo"), (a3c, "a3c")):
            checkpoint = client.Checkpoint.get(jobs[job].list_checkpoints()[-1].id)
            assert checkpoint.card["family"] == family
            model = checkpoint.load()
            played = rlmesh.run(model, "CartPole-v1", seeds=range(2))
            assert all(episode.steps > 0 for episode in played.episodes)

            order = ExportOrder(
                checkpoint_id=checkpoint.id,
                form="onnx",
                source=checkpoint.download(tmp_path / f"{family}.zip"),
                target=tmp_path / f"{family}.onnx",
                facts=None,
            )
            assert export(order)["same_actions"] == 64
            runtime = onnxruntime.InferenceSession(str(order.target))
            seen = np.random.default_rng(1).normal(size=(20, 4)).astype(np.float32)
            (actions,) = runtime.run(None, {str(runtime.get_inputs()[0].name): seen})
            assert np.asarray(actions).tolist() == [int(model.predict(one)) for one in seen]
