"""The reference environments: one number to say what a message, a byte and a structure cost.

All but CartPole replay four ready-made observations, so that their own step costs under a
microsecond, and their bytes do not compress. All are deterministic after a seeded reset: what
arrives can be checked against a copy in the client's process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from rlcore import ConfigurationError, MissingDependencyError

from rlmesh import spaces
from rlmesh.codec import NUMPY

if TYPE_CHECKING:
    import gymnasium

VECTOR_LANES = 16
FRAMES = 4
INSTRUCTION = "put the red cube into the blue bin"
HOME = "rlmesh.bench.reference"


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference environment.

    Attributes:
        name: how the command calls it.
        maker: what in this room makes one.
        shows: what its figures are about.
        steps: how many steps one measurement takes, unless its time is used up before.
        needs: the package that it needs beyond rlmesh.
    """

    name: str
    maker: str
    shows: str
    steps: int
    needs: str | None = None

    @property
    def source(self) -> str:
        """What `rlmesh serve` is given."""
        return f"{HOME}:{self.maker}"

    @property
    def is_installed(self) -> bool:
        """Whether what it needs is installed."""
        return self.needs is None or find_spec(self.needs) is not None


REFERENCES: Mapping[str, Reference] = {
    one.name: one
    for one in (
        Reference("noop", "noop", "4 float32: the cost of a message", 3000),
        Reference("cartpole", "cartpole", "CartPole-v1, with its resets", 3000, needs="gymnasium"),
        Reference("image", "image", "uint8 (210, 160, 3), 101 kB: an Atari frame", 2000),
        Reference("cameras", "cameras", "uint8 (3, 224, 224, 3), 452 kB: the cost of bytes", 1000),
        Reference("vec16", "vec16", "16 CartPoles at once", 2000, needs="gymnasium"),
        Reference("dict", "robot", "two images, 14 float32 and a sentence, 98 kB: structure", 2000),
    )
}


def reference(name: str) -> Reference:
    """Return the reference environment of a name.

    Raises:
        ConfigurationError: there is none.
        MissingDependencyError: it needs a package that is not installed.
    """
    found = REFERENCES.get(name)
    if found is None:
        raise ConfigurationError(
            f"there is no reference environment {name!r}",
            hint=f"There are {', '.join(REFERENCES)}.",
        )
    if not found.is_installed:
        raise MissingDependencyError(
            f"the reference environment {name!r} needs {found.needs}, which is not installed",
            hint=f'Install it: pip install "rlmesh[{found.needs}]"',
        )
    return found


class Frames:
    """Replays four random observations of its space."""

    def __init__(
        self,
        name: str,
        observation_space: spaces.Space,
        action_space: spaces.Space | None = None,
        fixed: Mapping[str, object] | None = None,
    ) -> None:
        self.spec = SimpleNamespace(id=f"rlmesh-bench/{name}-v0")
        self.metadata: dict[str, object] = {}
        self.render_mode = None
        self.observation_space = observation_space
        self.action_space = action_space or spaces.Discrete(4)
        drawn = observation_space.using(NUMPY)
        drawn.seed(0)
        self._frames: list[Any] = [drawn.sample() for _ in range(FRAMES)]  # Any: by the space
        for frame in self._frames if fixed else ():
            frame.update(fixed)
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, object] | None = None
    ) -> tuple[object, dict[str, object]]:
        """Begin with the first observation again."""
        self._steps = 0
        return self._frames[0], {}

    def step(self, action: object) -> tuple[object, float, bool, bool, dict[str, object]]:
        """Return the next observation; it never ends."""
        self._steps += 1
        return self._frames[self._steps % FRAMES], 1.0, False, False, {}

    def close(self) -> None:
        """Hold nothing."""


def noop() -> Frames:
    """Return the smallest observation worth sending."""
    return Frames("noop", spaces.Box(-np.inf, np.inf, (4,), "float32"))


def image() -> Frames:
    """Return an environment with one image."""
    return Frames("image", _pixels(210, 160, 3))


def cameras() -> Frames:
    """Return an environment with three camera images."""
    return Frames("cameras", _pixels(3, 224, 224, 3))


def robot() -> Frames:
    """Return an environment with what a robot sees, feels and is told."""
    space = spaces.Dict(
        {
            "front": _pixels(128, 128, 3),
            "wrist": _pixels(128, 128, 3),
            "state": spaces.Box(-np.inf, np.inf, (14,), "float32"),
            "instruction": spaces.Text(64),
        }
    )
    arm = spaces.Box(-1, 1, (7,), "float32")
    return Frames("robot", space, arm, {"instruction": INSTRUCTION})


def cartpole() -> object:
    """Return gymnasium's CartPole-v1."""
    return _pole()


def vec16() -> object:
    """Return 16 CartPoles that are stepped together and start again by themselves."""
    import gymnasium

    mode = gymnasium.vector.AutoresetMode.NEXT_STEP
    return gymnasium.vector.SyncVectorEnv([_pole] * VECTOR_LANES, autoreset_mode=mode)


def _pole() -> gymnasium.Env[Any, Any]:  # Any: gymnasium leaves them open
    import gymnasium

    return gymnasium.make("CartPole-v1")


def _pixels(*shape: int) -> spaces.Space:
    return spaces.Box(0, 255, shape, "uint8")
