"""What recording costs: memory and frames per second of video, and steps per second of steps.

    python packages/rlmesh/benchmarks/recording.py

Each measurement is a process of its own, so that its peak is its own.
"""

# ruff: noqa: T201 - a script that prints what it measured

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from rlmesh.numpy import Model
from rlmesh.recorder import Recorder
from rlmesh.runs.hooks import RunHooks
from rlmesh.runs.run import run

FRAMES = 1000
STEPS = 20_000


class Camera(gymnasium.Env[np.ndarray[Any, Any], np.int64]):
    """Draws 480 x 640 pixels, in which a patch of noise moves over a shade."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 - as gymnasium has it
    render_mode = "rgb_array"
    observation_space = spaces.Box(-1, 1, (4,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, steps: int) -> None:
        self._last = steps
        self._random = np.random.default_rng(0)
        self._shade = np.empty((480, 640, 3), np.uint8)
        self._shade[:] = np.linspace(0, 255, 640)[None, :, None]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
        """Start again."""
        self._step = 0
        return np.zeros(4, np.float32), {}

    def step(
        self, action: np.int64
    ) -> tuple[np.ndarray[Any, Any], float, bool, bool, dict[str, Any]]:
        """Move on by one."""
        self._step += 1
        seen = np.full(4, self._step / self._last, np.float32)
        return seen, 1.0, self._step >= self._last, False, {}

    def render(self) -> np.ndarray[Any, Any]:
        """Draw where the patch is."""
        frame = self._shade.copy()
        left = (self._step * 3) % 560
        frame[100:200, left : left + 80] = self._random.integers(0, 255, (100, 80, 3), np.uint8)
        return frame


def peak_mib() -> float:
    """Return the most memory that this process had resident, in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("this needs Linux")


def measure(what: str) -> dict[str, float]:
    """Return the seconds of one measurement, and its peak memory over what was idle before."""
    model = Model(lambda _: 0)
    run(model, Camera(5), seeds=[0], progress=False)
    with tempfile.TemporaryDirectory() as folder, Recorder() as recorder:
        hooks: RunHooks | None = None
        count = FRAMES
        if what == "video":
            hooks = recorder.capture(model="m", env="e")
        elif what == "video and observations":
            hooks = recorder.capture(model="m", env="e", observations=True)
        elif what == "steps":
            count = STEPS
            hooks = recorder.capture(model="m", env="e", cameras=[])
        elif what == "steps and observations":
            count = STEPS
            hooks = recorder.capture(model="m", env="e", cameras=[], observations=True)
        elif what == "no recording":
            count = STEPS
        idle = peak_mib()
        started = time.perf_counter()
        run(model, Camera(count), seeds=[0], hooks=hooks, progress=False)
        seconds = time.perf_counter() - started
        recorder.export(Path(folder) / "bundle")
        return {"per_second": count / seconds, "seconds": seconds, "mib": peak_mib() - idle}


def main() -> None:
    """Print every measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="one measurement, told as JSON")
    only = parser.parse_args().only
    if only is not None:
        print(json.dumps(measure(only)))
        return
    for what in ("video", "no recording", "steps", "steps and observations"):
        told = subprocess.run(
            [sys.executable, __file__, "--only", what], capture_output=True, text=True, check=True
        )
        found = json.loads(told.stdout)
        print(
            f"{what:24} {found['per_second']:9.0f} per second, {found['seconds']:6.2f} s, "
            f"{found['mib']:6.1f} MiB over idle"
        )


if __name__ == "__main__":
    main()
