"""Agents, their versions, and what they are put to."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from rleaas.models.shape import JsonObject, Moment, Shape, Status

AgentFramework = Literal["openai_compatible", "anthropic", "custom"]
AgentExportFormat = Literal["huggingface", "safetensors", "pytorch", "onnx", "openai_compatible"]


class Agent(Shape):
    """An agent at its current version, such as `v2`."""

    other_names: ClassVar = {"id": ("agent_id",)}

    id: str
    name: str = ""
    base_model: str = ""
    model_ref: str | None = None
    framework: str | None = None
    trainable: bool = True
    compatible_categories: list[str] = Field(default_factory=list[str])
    tool_permissions: list[str] = Field(default_factory=list[str])
    version: str | None = None
    created_at: Moment | None = None
    updated_at: Moment | None = None


class AgentVersion(Shape):
    """What an agent was configured as."""

    version: str
    is_current: bool | None = None
    reason: str | None = None
    config: JsonObject = Field(default_factory=dict[str, object])
    created_at: Moment | None = None


class AgentCheck(Shape):
    """One thing that was looked at."""

    name: str
    passed: bool
    detail: str = ""


class AgentValidation(Shape):
    """Whether an agent's configuration holds together, check by check."""

    valid: bool
    checks: list[AgentCheck] = Field(default_factory=list[AgentCheck])


class DryRun(Shape):
    """A few episodes of an agent; `evaluation_id` is the evaluation that plays them."""

    id: str
    agent_id: str | None = None
    environment_id: int | str | None = None
    environment: str | None = None
    evaluation_id: str | None = None
    status: Status | None = None
    episodes: int | None = None
    avg_reward: float | None = None
    pass_rate: float | None = None
    rollout_ids: list[str] = Field(default_factory=list[str])
    error: str | None = None
    created_at: Moment | None = None
    completed_at: Moment | None = None


class AgentBinding(Shape):
    """An agent at a version, bound to an environment."""

    other_names: ClassVar = {"id": ("deployment_id",)}

    id: str
    agent_id: str | None = None
    environment_id: int | str | None = None
    environment: str | None = None
    label: str | None = None
    status: Status | None = None
    agent_version: str | None = None
    created_at: Moment | None = None


class AgentExport(Shape):
    """A file that a checkpoint was exported to; `sha256` is the digest of what is downloaded.

    `checks` tells what was compared before it was given out: for ONNX, on how many observations
    onnxruntime took the same actions as the policy.
    """

    artifact_id: str | None = None
    agent_id: str | None = None
    checkpoint_id: str | None = None
    format: str | None = None
    download_url: str | None = None
    size_bytes: int | None = None
    sha256: str | None = None
    metadata: JsonObject | None = None
    checks: JsonObject | None = None
    downloaded_to: str | None = None
    created_at: Moment | None = None
