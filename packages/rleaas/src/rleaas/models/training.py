"""Training jobs, their metrics and their logs."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field
from rlcore import EnvironmentIdentity

from rleaas.models.agent import Agent as Agent
from rleaas.models.checkpoint import Checkpoint
from rleaas.models.shape import JsonObject, Moment, Shape, Status

FINISHED_TRAINING = frozenset({"completed", "failed", "cancelled", "awaiting_human_eval"})
"""Statuses that a training job does not leave by itself."""

JOB_STATUSES = (
    "pending",
    "running",
    "completed",
    "failed",
    "cancelled",
    "awaiting_human_eval",
)
"""What training jobs and evaluations can be."""

Algorithm = Literal["GRPO", "PPO", "SAC", "DQN", "A2C", "A3C", "TD3", "DDPG", "SLM"]


class TrainingResults(Shape):
    """What a training job has reached so far."""

    avg_reward: float | None = None
    success_rate: float | None = None
    best_reward: float | None = None
    current_tier: int | None = None
    current_episode: int | None = None
    total_steps: int | None = None
    wall_seconds: float | None = None
    stopped_by: str | None = None
    updates: int | None = None


class TrainingJob(Shape):
    """A training job.

    `status` is one of `pending`, `running`, `completed`, `failed`, `cancelled` and
    `awaiting_human_eval`; `progress` counts from 0 to 100. `start` says what the training started
    from, `warnings` what was asked for in two ways, and `why_not` what keeps it from being
    `reproducible` by its `seed`. While the job waits, `queue_position` is its place in the queue.
    A worker that died was started again from the last checkpoint: `attempt` counts its starts,
    `restarts` those after a death, and `attempts` says of each how it ended.
    """

    other_names: ClassVar = {"model": ("agent",), "run_name": ("name",)}

    job_id: str
    status: Status
    environment_name: str | None = None
    environment_version: int | None = None
    contract_digest: str | None = None
    algorithm: str | None = None
    model: str | None = None
    run_name: str | None = None
    progress: int = 0
    num_episodes: int | None = None
    current_episode: int | None = None
    max_steps: int | None = None
    config: JsonObject = Field(default_factory=dict[str, object])
    seed: int | None = None
    resume_from_checkpoint: str | None = None
    start: JsonObject | None = None
    warnings: list[str] = Field(default_factory=list[str])
    reproducible: bool | None = None
    why_not: str | None = None
    priority: int = 0
    attempt: int = 0
    restarts: int = 0
    attempts: list[JsonObject] = Field(default_factory=list[JsonObject])
    queue_position: int | None = None
    results: TrainingResults = Field(default_factory=TrainingResults)
    checkpoints: list[Checkpoint] = Field(default_factory=list[Checkpoint])
    error: str | None = None
    failure_reason: str | None = None
    message: str | None = None
    created_at: Moment | None = None
    started_at: Moment | None = None
    completed_at: Moment | None = None

    @property
    def id(self) -> str:
        """The job's id."""
        return self.job_id

    @property
    def finished(self) -> bool:
        """Whether the job does not go on by itself."""
        return self.status in FINISHED_TRAINING

    @property
    def reason(self) -> str:
        """Why the job failed, as far as the server says; empty when it says nothing."""
        told = (
            self.error,
            self.get("detail"),
            self.results.get("error"),
            self.results.get("failure_reason"),
            self.failure_reason,
            self.message,
        )
        return next((one for one in told if isinstance(one, str) and one), "")

    @property
    def identity(self) -> EnvironmentIdentity | None:
        """The environment it trains on; None before the contract is known."""
        if self.environment_name is None or self.contract_digest is None:
            return None
        return EnvironmentIdentity(
            self.environment_name, self.environment_version, self.contract_digest
        )


class QueuedJob(Shape):
    """A job that waits for its turn; `position` counts the jobs of everybody, from 1."""

    job_id: str
    position: int
    priority: int = 0
    waiting_since: Moment | None = None
    not_before: Moment | None = None


class TrainingCheck(Shape):
    """What a training job would be; `seed` is None where one would be drawn."""

    other_names: ClassVar = {"model": ("agent",), "run_name": ("name",)}

    environment_name: str | None = None
    environment_version: int | None = None
    contract_digest: str | None = None
    algorithm: str | None = None
    model: str | None = None
    run_name: str | None = None
    num_episodes: int | None = None
    max_steps: int | None = None
    config: JsonObject = Field(default_factory=dict[str, object])
    seed: int | None = None
    resume_from_checkpoint: str | None = None
    start: JsonObject | None = None
    scenario_id: str | None = None
    verifier_ids: list[str] = Field(default_factory=list[str])
    warnings: list[str] = Field(default_factory=list[str])
    reproducible: bool | None = None
    why_not: str | None = None
    priority: int = 0


class TrainingQueue(Shape):
    """The jobs that wait, in the order of their turns.

    `waiting` and `running` count the jobs of everybody; `max_jobs` is how many run at a time.
    """

    queue: list[QueuedJob] = Field(default_factory=list[QueuedJob])
    waiting: int = 0
    running: int = 0
    max_jobs: int | None = None


class MetricPoint(Shape):
    """One point of a job's learning curve; what else was measured is kept as further fields."""

    job_id: str | None = None
    episode: int
    timestep: int | None = None
    episode_reward: float | None = None
    avg_reward: float | None = None
    success_rate: float | None = None
    wall_seconds: float | None = None
    timestamp: Moment | None = None


class MetricPage(Shape):
    """A job's points after a cursor, and the cursor after them."""

    metrics: list[MetricPoint] = Field(default_factory=list[MetricPoint])
    cursor: str | int | None = None


class LogPage(Shape):
    """A job's log lines after a cursor, and the cursor after them.

    `done` says that the job is over and no line will follow.
    """

    lines: list[str] = Field(default_factory=list[str])
    cursor: str | int | None = None
    done: bool = False


class TrainingRequest(Shape):
    """What a training is asked to do; which of it this platform can, it says when it is sent."""

    environment_name: str | None = None
    algorithm: Algorithm = "PPO"
    num_episodes: int = Field(default=100, gt=0)
    max_steps: int = Field(default=1000, gt=0)
    config: JsonObject | None = None
    model: str | None = None
    run_name: str | None = None
    scenario_id: str | None = None
    verifier_ids: list[str] | None = None
    resume_from_checkpoint: str | None = None
    dataset_url: str | None = None
    category: str | None = None
    actions: list[str] | None = None
    verifier_id: str | None = None
    verifier_config: JsonObject | None = None
    verifier_conditions: list[JsonObject] | None = None


class TrainingResponse(Shape):
    """What the platform answers to a training request."""

    job_id: str
    status: Status
    environment_name: str
    message: str = ""


class TrainingConfig(Shape):
    """What there is to train with."""

    agents: list[Agent] = Field(default_factory=list[Agent])
    algorithms: list[str] = Field(default_factory=list[str])
    scenarios: list[JsonObject] = Field(default_factory=list[JsonObject])
