"""What requests about rollouts may say."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from rleaas.server.routes.bodies import Body, Count, JsonObject


class StoreRollout(Body):
    """An episode that was played elsewhere; unsaid totals are those of its steps."""

    environment_name: str
    steps: list[JsonObject] = Field(max_length=100_000)
    id: str | None = Field(None, pattern="^[A-Za-z0-9_.-]{1,100}$")
    episode_number: int = Field(1, ge=0, le=10**9)
    initial_state: JsonObject | None = None
    final_outcome: str | JsonObject | None = None
    final_environment_state: JsonObject | None = None
    total_reward: float | None = Field(None, allow_inf_nan=False)
    total_steps: int | None = Field(None, ge=0, le=10**9)
    status: Literal["completed", "failed", "in_progress"] = "completed"
    source: str = "simulation"
    job_id: str | None = None
    timestamp: datetime | None = None
    policy_name: str | None = Field(None, max_length=200)
    checkpoint_label: str | None = Field(None, max_length=200)
    scenario_id: str | None = None
    scenario_name: str | None = Field(None, max_length=200)
    success: bool | None = None
    verifier_results: list[JsonObject] = Field(default_factory=list[JsonObject])
    metadata: JsonObject | None = None


class ExportReport(Body):
    """Which evaluation, or all recent ones, and how."""

    evaluation_id: str = ""
    format: Literal["json", "csv", "pdf", "html"] = "json"
    include_trajectory_summary: bool = True
    include_verifier_explanations: bool = True
    signature: bool = False
    limit: Count = 100
