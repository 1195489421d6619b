"""The environments of the interop tests; they run beside either rlmesh, and import neither."""

import copy
import string
import time
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

STEPS = 4
LANES = 3

Space = spaces.Space[Any]  # Any: gymnasium's own element type


def box(dtype: type[np.generic]) -> spaces.Box:
    kind = np.dtype(dtype).kind
    low, high = {"b": (0, 1), "u": (0, 200), "i": (-100, 100), "f": (-2.0, 2.0)}[kind]
    element: Any = dtype  # gymnasium's signature names fewer types than it takes
    return spaces.Box(low, high, (2, 3), element)


DTYPES: tuple[type[np.generic], ...] = (
    np.bool_,
    np.uint8,
    np.uint16,
    np.uint32,
    np.uint64,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.float16,
    np.float32,
    np.float64,
)
LOW = np.array([-1.0, -np.inf, 0.0, -np.inf], np.float32)
HIGH = np.array([1.0, 5.0, np.inf, np.inf], np.float32)

SPACES: dict[str, Space] = {
    **{f"Box {np.dtype(dtype).name}": box(dtype) for dtype in DTYPES},
    "Box unbounded": spaces.Box(-np.inf, np.inf, (3,), np.float32),
    "Box half-bounded": spaces.Box(0.0, np.inf, (3,), np.float64),
    "Box bounds by element": spaces.Box(LOW, HIGH, dtype=np.float32),
    "Box whole int64": spaces.Box(-(2**63), 2**63 - 1, (3,), np.int64),
    "Box image": spaces.Box(0, 255, (96, 64, 3), np.uint8),
    "Box rank 0": spaces.Box(-1.0, 1.0, (), np.float32),
    "Box zero size": spaces.Box(-1.0, 1.0, (0, 3), np.float32),
    "Discrete": spaces.Discrete(300),
    "Discrete start": spaces.Discrete(5, start=-2),
    "MultiBinary": spaces.MultiBinary(5),
    "MultiBinary 2-d": spaces.MultiBinary((2, 3)),
    "MultiDiscrete": spaces.MultiDiscrete([3, 300]),
    "MultiDiscrete 2-d": spaces.MultiDiscrete(np.array([[3, 2], [300, 4]])),
    "MultiDiscrete start": spaces.MultiDiscrete([3, 300], start=[5, -7]),
    "Text": spaces.Text(12, min_length=1),
    "Text charset": spaces.Text(12, min_length=1, charset=string.ascii_letters + " é"),
    "Text may be empty": spaces.Text(1, min_length=0, charset="ab"),
    "Dict": spaces.Dict(zoom=spaces.Discrete(3), angle=spaces.Box(-1.0, 1.0, (3,), np.float64)),
    "Tuple": spaces.Tuple((spaces.Discrete(300), spaces.MultiBinary(2))),
    "nested": spaces.Dict(
        pose=spaces.Box(-1.0, 1.0, (3,), np.float64),
        inner=spaces.Dict(
            buttons=spaces.MultiBinary(4),
            gears=spaces.MultiDiscrete([3, 300]),
            pair=spaces.Tuple((spaces.Discrete(300, start=9), spaces.Text(8, min_length=1))),
        ),
        images=spaces.Tuple(
            (spaces.Box(0, 255, (8, 8, 3), np.uint8), spaces.Box(0, 1, (2,), np.float16))
        ),
    ),
}

# What the published package has no words for.
MORE_SPACES: dict[str, Space] = {
    "Sequence": spaces.Sequence(spaces.Discrete(3)),
    "Graph": spaces.Graph(spaces.Box(-1.0, 1.0, (2,)), spaces.Discrete(4)),
    "OneOf": spaces.OneOf((spaces.Discrete(3), spaces.Box(-1.0, 1.0, (2,)))),
}


class Mirror(gymnasium.Env[Any, Any]):
    """Gives each action back as the next observation; an episode has four steps."""

    def __init__(self, kind: str) -> None:
        self.metadata = {"render_modes": ["rgb_array"], "author": {"name": "interop", "year": 2026}}
        # Of its own: what one lane samples must not depend on the others.
        space = SPACES[kind] if kind in SPACES else MORE_SPACES[kind]
        self.observation_space = copy.deepcopy(space)
        self.action_space = space
        self.render_mode = "rgb_array"
        self.steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        if seed is not None:
            self.observation_space.seed(seed)
        return self.observation_space.sample(), {"seed": seed, "options": options}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        info = {"step": self.steps, "nothing": None, "nested": {"odd": [1, 2.5, "x", True]}}
        # A number of a Box without dimensions may come as a float; gymnasium wants an array.
        space: Any = self.action_space
        bare = type(space) is spaces.Box and space.shape == ()
        info["legal"] = space.contains(np.asarray(action, space.dtype) if bare else action)
        if self.steps == STEPS:
            info["is_success"] = True
        return action, 0.5 * self.steps, self.steps == STEPS, False, info

    def render(self) -> Any:
        return np.full((4, 6, 3), self.steps, np.uint8)


class Trouble(gymnasium.Env[Any, Any]):
    """Does what its action says, good or bad; says in its info what it was given."""

    GO_ON, RAISE, SLEEP, TELL, END, CUT, WRONG_SHAPE = range(7)
    NAP_SECONDS = 0.4

    def __init__(self) -> None:
        self.metadata = {"render_modes": ["rgb_array"]}
        self.observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.action_space = spaces.Discrete(7)
        self.render_mode = "rgb_array"
        self.frame = "rgb"
        self.total = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        asked = options or {}
        if asked.get("raise"):
            raise KeyError("no such level")
        self.frame = asked.get("frame", "rgb")
        self.total = 0
        return np.zeros(1, np.float32), {"seed": seed, "options": options}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.total += 1
        if action == self.RAISE:
            raise RuntimeError("the gripper is stuck")
        if action == self.SLEEP:
            time.sleep(self.NAP_SECONDS)
        info = dict(INFO) if action == self.TELL else {"total": self.total}
        shape = 2 if action == self.WRONG_SHAPE else 1
        observation = np.full(shape, 0.25, np.float32)
        return observation, 1.5, action == self.END, action == self.CUT, info

    def render(self) -> Any:
        if self.frame == "raise":
            raise ValueError("no display")
        return FRAMES[self.frame]


class Counting(gymnasium.Env[Any, Any]):
    """Counts; ends by itself after as many steps as its number says, so lanes end apart."""

    SLEEP, NAP_SECONDS = 7, 0.4

    def __init__(self, number: int) -> None:
        self.observation_space = spaces.Box(-100.0, 100.0, (2,), np.float32)
        self.action_space = spaces.Discrete(9)
        self.metadata = {"render_modes": ["rgb_array"]}
        self.render_mode = "rgb_array"
        self.number = number
        self.steps = 0
        self.base = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        self.steps = 0
        self.base = -1 if seed is None else seed
        self.base = (options or {}).get("base", self.base)
        return self._observed(), {"base": self.base}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        if action == 8:
            raise RuntimeError(f"lane {self.number} is stuck")
        if action == self.SLEEP:
            time.sleep(self.NAP_SECONDS)
        return self._observed(), float(action), self.steps == self.number + 2, False, {}

    def render(self) -> Any:
        return np.full((4, 6, 3), 10 * self.number + self.steps, np.uint8)

    def _observed(self) -> Any:
        return np.array([self.base, self.steps], np.float32)


INFO: Mapping[str, Any] = {
    "none": None,
    "yes": True,
    "int": -(2**63),
    "float": 0.1,
    "infinite": float("inf"),
    "text": "h\u00e9 \U0001f600",
    "bytes": b"\x00\xff",
    "list": [1, [2.5, None], "x"],
    "tuple": (1, 2),
    "map": {"b": {"c": []}, "a": {}},
    "scalar": np.float32(0.5),
    "number": np.int16(7),
    "array": np.arange(6, dtype=np.int16).reshape(2, 3),
    "empty": np.zeros((0,), np.float32),
    "rank 0": np.array(4.5),
}
PIXELS = np.arange(4 * 6 * 4, dtype=np.uint8).reshape(4, 6, 4)
FRAMES: Mapping[str, Any] = {
    "rgb": PIXELS[:, :, :3],
    "rgba": PIXELS,
    "grey": PIXELS[:, :, 0],
    "channels first": np.ascontiguousarray(PIXELS[:, :, :3].transpose(2, 0, 1)),
    "none": None,
}
