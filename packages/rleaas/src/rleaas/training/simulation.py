"""The `simulation` object of a training request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rleaas.training import config_rules as rules

_SETTINGS = ("speed", "seed", "episode_settings")
_EPISODE_SETTINGS = ("num_episodes", "max_steps")

SIMULATION_SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "speed": {"type": "number", "exclusiveMinimum": 0},
        "seed": {"type": "integer", "minimum": 0, "maximum": 2**32 - 1},
        "episode_settings": {
            "type": "object",
            "properties": {
                "num_episodes": {"type": "integer", "minimum": 1},
                "max_steps": {"type": "integer", "minimum": 1},
            },
            "additionalProperties": False,
        },
    },
    "additionalProperties": False,
}
"""The same rules as JSON Schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """Simulation settings; `speed` multiplies the rate at which a paced environment steps."""

    speed: float | None = None
    seed: int | None = None
    num_episodes: int | None = None
    max_steps: int | None = None

    def to_config(self) -> dict[str, object]:
        """The object that validates to this again."""
        out: dict[str, object] = {}
        if self.speed is not None:
            out["speed"] = self.speed
        if self.seed is not None:
            out["seed"] = self.seed
        settings = {"num_episodes": self.num_episodes, "max_steps": self.max_steps}
        told = {key: value for key, value in settings.items() if value is not None}
        if told:
            out["episode_settings"] = told
        return out


def validate_simulation(value: object, *, strict: bool = False) -> Simulation:
    """A checked `simulation` object.

    Clients leave keys that they do not know to the platform, which is strict and refuses them.

    Raises:
        ConfigurationError: naming the field, as `simulation.seed`.
    """
    given = rules.mapping("simulation", value)
    for name in given:
        if strict and name not in _SETTINGS:
            raise rules.unknown(name, "simulation", _SETTINGS)
    speed = given.get("speed")
    seed = given.get("seed")
    settings = given.get("episode_settings")
    episodes = steps = None
    if settings is not None:
        inner = dict(rules.mapping("simulation.episode_settings", settings))
        if "num_episodes" in inner:
            episodes = rules.positive_int(
                "simulation.episode_settings.num_episodes", inner["num_episodes"]
            )
        if "max_steps" in inner:
            steps = rules.positive_int("simulation.episode_settings.max_steps", inner["max_steps"])
        for name in inner:
            if name not in _EPISODE_SETTINGS:
                raise rules.unknown(name, "simulation.episode_settings", _EPISODE_SETTINGS)
    return Simulation(
        speed=None if speed is None else rules.above_zero("simulation.speed", speed),
        seed=None if seed is None else rules.seed("simulation.seed", seed),
        num_episodes=episodes,
        max_steps=steps,
    )
