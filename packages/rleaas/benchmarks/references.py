"""What each algorithm has to solve with its defaults; every family adds its own to the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, cast

import gymnasium


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A task that an algorithm solves when it is given no hyper-parameters.

    Attributes:
        algorithm: its name in requests.
        environment: a gymnasium id, or `module:maker`.
        target: the mean return that is asked of its best checkpoint; training ends when its last
            `average_over` episodes have it.
        episodes: the budget.
        average_over: how many those are.
        max_steps: the most steps of an episode.
        kwargs: what the environment is made with.
        direct: `module:function` of `benchmarks` that does the same with the library alone, for
            comparison; None where there is no other library.
    """

    algorithm: str
    environment: str
    target: float
    episodes: int
    max_steps: int = 500
    average_over: int = 20
    kwargs: Mapping[str, object] = field(default_factory=dict[str, object])
    direct: str | None = None

    @property
    def source(self) -> str:
        """What the environment is registered with."""
        return f"{'python' if ':' in self.environment else 'gym'}://{self.environment}"

    def make(self) -> gymnasium.Env[Any, Any]:
        """The environment here."""
        kwargs = cast("dict[str, Any]", dict(self.kwargs))
        module, _, maker = self.environment.partition(":")
        if not maker:
            return gymnasium.make(self.environment, **kwargs)
        return cast("gymnasium.Env[Any, Any]", getattr(import_module(module), maker)(**kwargs))


_SB3 = "direct_sb3:train"
_OWN = "direct_own:train"

REFERENCES = [
    Reference(algorithm="PPO", environment="CartPole-v1", target=475.0, episodes=600, direct=_SB3),
    Reference(algorithm="A2C", environment="CartPole-v1", target=475.0, episodes=2500, direct=_SB3),
    Reference(algorithm="DQN", environment="CartPole-v1", target=475.0, episodes=1000, direct=_SB3),
    Reference(
        algorithm="SAC",
        environment="Pendulum-v1",
        target=-200.0,
        episodes=40,
        max_steps=200,
        direct=_SB3,
    ),
    Reference(
        algorithm="TD3",
        environment="Pendulum-v1",
        target=-200.0,
        episodes=60,
        max_steps=200,
        direct=_SB3,
    ),
    Reference(
        algorithm="DDPG",
        environment="Pendulum-v1",
        target=-200.0,
        episodes=40,
        max_steps=200,
        direct=_SB3,
    ),
    Reference(
        algorithm="GRPO", environment="CartPole-v1", target=475.0, episodes=2000, direct=_OWN
    ),
    Reference(algorithm="A3C", environment="CartPole-v1", target=475.0, episodes=3000, direct=_OWN),
    Reference(
        algorithm="SLM",
        environment="rleaas.training.slm.tool_desk:ToolDeskEnv",
        target=0.8,  # success gives 1.2, the right look-up alone 0.2
        episodes=12_800,
        average_over=640,
        direct="direct_trl:train",
    ),
]
"""One entry for each algorithm of the build."""
