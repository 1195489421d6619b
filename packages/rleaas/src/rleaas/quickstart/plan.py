"""What the quickstart sets out to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DEFAULT_OUT = Path("rleaas-quickstart")
DEFAULT_EPISODES = 1500


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One environment, trained until it is good, judged on fixed seeds.

    Attributes:
        environment: the name to register.
        source: what is behind the name.
        good: the mean return at which training stops, and an episode's return counts as success.
        average_over: the last episodes whose mean return has to be good; over fewer, a policy that
            still falls now and then stops the training.
        learning_rate: PPO's, settled by trying several on this environment and several seeds.
        episodes: the episodes after which training stops even if it is not good.
        max_steps: the steps of an episode at most.
        seeds: the seeds to evaluate on.
        training_seed: what makes the training itself repeatable.
        out: the folder for the curve and the report.
        data: the folder of the embedded server; `out/data` by default.
        base_url: a running server to use instead of an embedded one.
    """

    environment: str = "CartPole-v1"
    source: str = "gym://CartPole-v1"
    good: float = 475.0
    average_over: int = 50
    learning_rate: float = 1e-3
    episodes: int = DEFAULT_EPISODES
    max_steps: int = 500
    seeds: tuple[int, ...] = tuple(range(50))
    training_seed: int = 7
    out: Path = DEFAULT_OUT
    data: Path | None = None
    base_url: str | None = None

    @property
    def data_folder(self) -> Path:
        """Where the embedded server keeps its records."""
        return self.out / "data" if self.data is None else self.data
