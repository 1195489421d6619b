"""What the quickstart in a built-in world sets out to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from rleaas.quickstart.plan import DEFAULT_OUT

EPISODES = 16_000
SEEDS = 5
SETTINGS: Mapping[str, object] = MappingProxyType(
    {
        "ent_coef": 0.01,
        "groups_per_update": 16,
        "average_over": 500,
    }
)
"""GRPO's, tried out with several seeds; the rest are its defaults.

Updates from more groups, and a larger bonus for trying other tools, end in more tasks done: with
the defaults the checks are learned as well, but fewer decisions. The best checkpoint is told by 500
episodes: over fewer, it is the luckiest one.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerticalPlan:
    """One built-in world, trained on its training scenarios, judged on those it never saw.

    Attributes:
        vertical: `FinSim` or another one.
        episodes: of the training.
        max_steps: the calls of an episode at most.
        seeds: how many seeds each held-out scenario is played with.
        training_seed: what makes the training repeatable.
        out: the folder for the curve and the report.
        data: the folder of the embedded server; `out/data` by default.
        base_url: a running server to use instead of an embedded one.
    """

    vertical: str = "FinSim"
    episodes: int = EPISODES
    max_steps: int = 40
    seeds: int = SEEDS
    training_seed: int = 7
    out: Path = DEFAULT_OUT
    data: Path | None = None
    base_url: str | None = None

    @property
    def environment(self) -> str:
        """The name to register."""
        return f"{self.vertical}-Prod-v1"

    @property
    def data_folder(self) -> Path:
        """Where the embedded server keeps its records."""
        return self.out / "data" if self.data is None else self.data
