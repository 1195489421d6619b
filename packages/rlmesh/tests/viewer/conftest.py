from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray
from rlmesh.runs.frames import FrameSource, frame_sources_of
from rlmesh.runs.hooks import StepEvent
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.results import EpisodeResult, RunResult
from rlmesh.runs.views import ViewControl
from rlmesh.specs import EnvContract, contract_of
from rlmesh.viewer.encoding import FrameEncoder, frame_encoder
from rlmesh.viewer.hud import Hud
from rlmesh.viewer.page_server import PageServer
from rlmesh.viewer.screen import Screen


class Painter(gym.Env[dict[str, Any], Any]):  # Any: gymnasium's own samples
    """Draws its step number: the render is that red, the camera that green, everywhere."""

    metadata = {"render_modes": ["rgb_array", "rgb_array_list", "ansi"]}  # noqa: RUF012

    def __init__(self, length: int = 20, render_mode: str | None = "rgb_array") -> None:
        self.render_mode = render_mode
        self.observation_space = gym.spaces.Dict(
            {
                "camera": gym.spaces.Box(0, 255, (24, 32, 3), np.uint8),
                "pose": gym.spaces.Box(-1.0, 1.0, (2,), np.float32),
            }
        )
        self.action_space = gym.spaces.Discrete(2)
        self.length = length
        self.at = 0
        self.renders = 0
        self.broken = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        super().reset(seed=seed)
        self.at = 0
        return self._observation(), {}

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        self.at += 1
        done = self.at >= self.length
        return self._observation(), 1.0, done, False, {"is_success": True} if done else {}

    def render(self) -> Any:
        self.renders += 1
        if self.broken:
            raise RuntimeError("the lamp is out")
        frame = painted(self.at, 0, 48, 64)
        if self.render_mode == "rgb_array":
            return frame
        return [painted(0, 0, 48, 64), frame] if self.render_mode == "rgb_array_list" else "text"

    def _observation(self) -> dict[str, Any]:
        return {"camera": painted(self.at, 1, 24, 32), "pose": np.zeros(2, np.float32)}


def painted(value: int, channel: int, height: int, width: int) -> NDArray[np.uint8]:
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[:, :, channel] = value % 256
    return pixels


@pytest.fixture
def painter() -> type[Painter]:
    return Painter


@dataclass
class Context:
    """What a run tells a viewer of itself."""

    contract: EnvContract | None
    num_envs: int
    sources: tuple[FrameSource, ...]

    def frame_sources(self) -> tuple[FrameSource, ...]:
        return self.sources


@pytest.fixture
def context_of() -> Callable[[Painter], Context]:
    def make(env: Painter) -> Context:
        contract = contract_of(env)
        return Context(contract, 1, frame_sources_of(env, contract))

    return make


@pytest.fixture
def step_event() -> Callable[..., StepEvent]:
    def make(step: int, **changes: Any) -> StepEvent:
        facts: dict[str, Any] = {
            "episode": 0,
            "seed": 7,
            "step": step,
            "observation": None,
            "action": 0,
            "reward": 1.0,
            "terminated": False,
            "truncated": False,
            "info": {},
            "predict_ms": 2.0,
            "step_ms": 0.5,
            "next_observation": {"camera": painted(step + 1, 1, 24, 32)},
        }
        return StepEvent(**(facts | changes))

    return make


@pytest.fixture
def episode_result() -> Callable[..., EpisodeResult]:
    def make(index: int, **changes: Any) -> EpisodeResult:
        facts: dict[str, Any] = {
            "index": index,
            "seed": index,
            "steps": 20,
            "reward": 20.0,
            "terminated": True,
            "truncated": False,
            "success": True,
            "duration_s": 0.25,
            "outcome": Outcome.SUCCESS,
        }
        return EpisodeResult(**(facts | changes))

    return make


@pytest.fixture
def empty_result() -> RunResult:
    return RunResult(asked=0)


@dataclass
class Shown:
    """A page server with its screen."""

    screen: Screen
    server: PageServer
    control: ViewControl = field(init=False)

    def __post_init__(self) -> None:
        self.control = self.screen.control

    @property
    def port(self) -> int:
        return int(self.server.address.rstrip("/").rpartition(":")[2])


@pytest.fixture
def shown() -> Iterator[Shown]:
    """A page on a free port, with two sources and no picture yet."""
    screen = Screen(ViewControl(), Hud(3), None)
    sources = (
        FrameSource("render", "render", capture=lambda: None),
        FrameSource("camera", "observation", pick=lambda _: None),
    )
    screen.offer("Painter-v0", sources)
    encoder: FrameEncoder = frame_encoder("png", 75)
    server = PageServer(screen, encoder, port=0)
    server.start()
    yield Shown(screen, server)
    screen.close()
    server.close()


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port of the loopback interface that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    """Wait until something another thread does is seen."""

    def wait(seen: Callable[[], bool]) -> None:
        end = time.monotonic() + 30
        while not seen():
            assert time.monotonic() < end, "it did not happen"
            time.sleep(0.005)

    return wait
