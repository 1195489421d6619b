"""Record a run with every step and a video, read it back, replay it, and write a report."""

import tempfile
from pathlib import Path

import gymnasium
import rlmesh
from rlmesh.numpy import Model
from rlmesh.recorder import Recorder, load, replay, write_report

balance = Model(lambda seen: int(seen[2] + 0.3 * seen[3] > 0))
folder = Path(tempfile.mkdtemp())

with Recorder() as recorder:
    hooks = recorder.capture(model="balance", env="CartPole", hud=True)
    env = gymnasium.make("CartPole-v1", render_mode="rgb_array")
    print(rlmesh.run(balance, env, seeds=range(3), max_episode_steps=60, hooks=hooks))
    bundle = recorder.export(folder / "bundle.zip")

recorded = load(bundle)  # every file is compared with its digest
print("files verified:", recorded.verified)

(workload,) = recorded.workloads
first = workload.episodes[0]
print(f"seed {first.seed}: {first.media[0].frame_count} frames of {first.media[0].camera}")
assert first.trajectory is not None
with first.trajectory.load() as steps:
    print(f"{steps.steps} steps, first actions {steps.actions[:8].tolist()}")

# The recorded seeds and actions give the same observations and rewards, step by step.
print(replay(recorded))

# An environment that changed meanwhile does not, and is shown where.
heavier = gymnasium.make("CartPole-v1")
heavier.unwrapped.gravity = 9.81  # type: ignore[attr-defined]  # CartPole's own
print(replay(recorded, heavier))

report = write_report(recorded, folder / "report.html")
print(f"report: {report.name}, {report.stat().st_size // 1024} KiB in one file")
