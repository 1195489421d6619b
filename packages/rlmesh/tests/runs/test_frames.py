from collections.abc import Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import rlmesh.numpy
from numpy.typing import NDArray
from rlmesh.runs.frames import FrameSource, frame_sources_of
from rlmesh.runs.local_env import LocalEnv
from rlmesh.specs import contract_of

Frame = NDArray[np.uint8]


def flat(value: int) -> Frame:
    return np.full((12, 16, 3), value, np.uint8)


class Seen(gym.Env[Any, Any]):
    """Its space and what it renders are given; each step, it is one shade brighter."""

    def __init__(
        self, space: gym.Space[Any], *, render_mode: str | None = None, shade: int = 10
    ) -> None:
        self.observation_space = space
        self.action_space = gym.spaces.Discrete(2)
        self.render_mode = render_mode
        self.metadata = {"render_modes": ["rgb_array", "rgb_array_list", "ansi"]}
        self.shade = shade

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.shade += 1
        return self.observation_space.sample(), 0.0, False, False, {}

    def render(self) -> Any:
        match self.render_mode:
            case "rgb_array":
                return flat(self.shade)
            case "rgb_array_list":
                return [flat(1), flat(self.shade)]
            case _:
                return "words"


PLAIN: gym.Space[Any] = gym.spaces.Box(0.0, 1.0, (2,))
CAMERA: gym.Space[Any] = gym.spaces.Box(0, 255, (12, 16, 3), np.uint8)


def _same(lane: Seen) -> Seen:
    return lane


def sources(env: gym.Env[Any, Any], **more: int) -> tuple[FrameSource, ...]:
    return frame_sources_of(env, contract_of(env), **more)


def shade(source: FrameSource) -> int | None:
    assert source.capture is not None
    frame = source.capture()
    return None if frame is None else int(frame[0, 0, 0])


def facts(found: Sequence[FrameSource]) -> list[tuple[str, str, int | None]]:
    return [(source.label, source.kind, source.lane) for source in found]


@pytest.mark.parametrize("mode", ["rgb_array", "rgb_array_list"])
def test_what_is_rendered_can_be_looked_at_now(mode: str) -> None:
    env = Seen(PLAIN, render_mode=mode)
    (render,) = sources(env)
    assert facts([render]) == [("render", "render", None)]
    assert shade(render) == 10
    env.step(0)
    assert shade(render) == 11


@pytest.mark.parametrize("mode", [None, "ansi", "human"])
def test_an_environment_that_draws_no_arrays_has_no_render_source(mode: str | None) -> None:
    assert sources(Seen(PLAIN, render_mode=mode)) == ()


def test_images_anywhere_in_observations_are_sources_by_their_path() -> None:
    parts: dict[str, gym.Space[Any]] = {
        "arm": gym.spaces.Dict({"wrist": CAMERA, "joints": PLAIN}),
        "eyes": gym.spaces.Tuple((CAMERA, CAMERA)),
    }
    space = gym.spaces.Dict(parts)
    found = sources(Seen(space, render_mode="rgb_array"))
    assert [source.label for source in found] == ["render", "arm.wrist", "eyes.0", "eyes.1"]
    observation = {
        "arm": {"wrist": flat(3), "joints": np.zeros(2, np.float32)},
        "eyes": (flat(4), flat(5)),
    }
    picked = [source.pick(observation) for source in found[1:] if source.pick is not None]
    assert [None if frame is None else int(frame[0, 0, 0]) for frame in picked] == [3, 4, 5]
    assert all(source.capture is None for source in found[1:])


def test_an_observation_that_is_an_image_is_called_observation() -> None:
    assert facts(sources(Seen(CAMERA))) == [("observation", "observation", None)]


def test_a_camera_called_render_leaves_the_name_to_itself() -> None:
    space = gym.spaces.Dict({"render": CAMERA})
    found = sources(Seen(space, render_mode="rgb_array"))
    assert facts(found) == [("render()", "render", None), ("render", "observation", None)]


def test_without_a_contract_there_is_still_what_is_rendered() -> None:
    env = Seen(PLAIN, render_mode="rgb_array")
    assert [source.label for source in frame_sources_of(env, None)] == ["render"]
    assert [source.label for source in frame_sources_of(LocalEnv(env), None)] == ["render"]


def test_lanes_are_a_grid_first_and_then_each_alone() -> None:
    lanes = [Seen(CAMERA, render_mode="rgb_array", shade=n) for n in (20, 30, 40)]
    env = gym.vector.SyncVectorEnv([partial(_same, lane) for lane in lanes])
    env.reset()
    single = contract_of(Seen(CAMERA, render_mode="rgb_array"))
    found = frame_sources_of(env, single)
    assert facts(found) == [
        ("render", "render", None),
        ("observation", "observation", None),
        ("render[0]", "render", 0),
        ("observation[0]", "observation", 0),
        ("render[1]", "render", 1),
        ("observation[1]", "observation", 1),
        ("render[2]", "render", 2),
        ("observation[2]", "observation", 2),
    ]
    assert [shade(source) for source in found if source.kind == "render"] == [20, 20, 30, 40]
    grid = found[0].capture
    assert grid is not None
    drawn = grid()
    assert drawn is not None
    assert drawn.shape == (24, 32, 3)
    assert [int(drawn[y, x, 0]) for y, x in ((0, 0), (0, 16), (12, 0), (12, 16))] == [20, 30, 40, 0]
    env.close()


class Together:
    """Draws all its lanes at once, as gymnasium's AsyncVectorEnv does."""

    num_envs = 2
    render_mode = "rgb_array"

    def render(self) -> tuple[Frame, ...]:
        return flat(5), flat(6)


def test_of_lanes_that_are_drawn_together_one_can_be_looked_at() -> None:
    found = frame_sources_of(Together(), None)
    assert [source.label for source in found] == ["render", "render[0]", "render[1]"]
    assert [shade(source) for source in found] == [5, 5, 6]


def test_a_remote_environment_is_looked_at_through_its_handle() -> None:
    with (
        rlmesh.EnvServer(
            lambda: Seen(CAMERA, render_mode="rgb_array", shade=60), "tcp://127.0.0.1:0"
        ) as server,
        rlmesh.numpy.RemoteEnv(server.address) as env,
    ):
        observation, _ = env.reset(seed=0)
        found = frame_sources_of(env, env.env_contract)
        assert [source.label for source in found] == ["render", "observation"]
        assert shade(found[0]) == 60
        pick = found[1].pick
        assert pick is not None
        picked = pick(observation)
        assert picked is not None
        assert np.array_equal(picked, observation)


def test_a_lane_of_a_remote_vector_is_drawn_alone() -> None:
    lanes = [Seen(PLAIN, render_mode="rgb_array", shade=n) for n in (70, 80)]
    with (
        rlmesh.EnvServer(lanes, "tcp://127.0.0.1:0") as server,
        rlmesh.numpy.RemoteVectorEnv(server.address) as env,
    ):
        env.reset(seed=0)
        found = frame_sources_of(env, env.env_contract)
        assert [source.label for source in found] == ["render", "render[0]", "render[1]"]
        assert [shade(source) for source in found] == [70, 70, 80]
