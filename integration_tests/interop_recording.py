"""Record the same runs under either rlmesh: `python interop_recording.py FOLDER`.

Imports only what both packages have. Writes FOLDER/bundle and FOLDER/bundle.zip.
"""

import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import rlmesh
import rlmesh.numpy
from gymnasium import spaces
from rlmesh.recorder import Recorder


class Drawn(gymnasium.Env[Any, Any]):  # Any: gymnasium's own samples
    """Draws its step number, 49 x 65; names a video of its own at the end of odd seeds."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 - as gymnasium has it
    render_mode = "rgb_array"
    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.at, self.odd = 0, bool((seed or 0) % 2)
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        self.at += 1
        over = self.at == 5
        info: dict[str, Any] = {"is_success": self.odd} if over else {}
        if over and self.odd:
            info["video_artifact_path"] = "own.webm"
        return np.full(2, self.at / 10, np.float32), 1.5, over, False, info

    def render(self) -> Any:
        return np.full((49, 65, 3), self.at * 20, np.uint8)


def main() -> None:
    """Record: filmed runs with two models, one that is cut off, and a result that is added."""
    target = Path(sys.argv[1])
    (Path.cwd() / "own.webm").write_bytes(b"a film")
    model = rlmesh.numpy.Model(lambda observation: 0)
    recorder = Recorder(result_set_id="both", fps=25, quality=80)
    filmed = recorder.capture(model="a/b c", env="Drawn", config={"lr": 0.5, "tags": ["x"]})
    rlmesh.run(model, Drawn(), seeds=[1, 2], hooks=filmed)
    rlmesh.run(model, Drawn(), seeds=[3], hooks=filmed)
    cut = recorder.capture(model="a/b c", env="Drawn", task="..", cameras=[])
    result = rlmesh.run(model, Drawn(), seeds=[4], max_episode_steps=3, hooks=cut)
    recorder.add(result, model="ü", env="Drawn", task="added", included_in_metrics=False)
    recorder.capture(model="never run", env="Drawn")
    for name in ("bundle", "bundle.zip"):
        recorder.export(target / name, recorded_at="2026-01-01T00:00:00+00:00")
    recorder.close()


if __name__ == "__main__":
    main()
