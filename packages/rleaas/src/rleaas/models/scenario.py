"""Scenarios, and suites of them."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from rleaas.models.shape import JsonObject, Moment, Shape

SuitePurpose = Literal["training", "evaluation"]


class Scenario(Shape):
    """A task in an environment, of one of the tiers 1 to 4.

    Those of the library have a `vertical`, a `domain`, the `purpose` that they are for, and how
    many calls their reference solution takes.
    """

    other_names: ClassVar = {"name": ("title",), "environment": ("product",)}

    id: str
    name: str = ""
    tier: int | None = None
    task_prompt: str = ""
    max_steps: int | None = None
    available_tools: list[str] | None = None
    context_injection: JsonObject | None = None
    success_criteria_ref: str | None = None
    tags: list[str] = Field(default_factory=list[str])
    environment: str = ""
    environment_id: int | None = None
    source: str | None = None
    title: str | None = None
    vertical: str | None = None
    domain: str | None = None
    purpose: SuitePurpose | None = None
    avg_completion_steps: int | None = None
    version: int | None = None
    created_at: Moment | None = None
    updated_at: Moment | None = None


class ScenarioSuite(Shape):
    """Scenarios in their order, for training or held out for evaluation."""

    id: str
    name: str = ""
    purpose: str = "training"
    scenario_ids: list[str] = Field(default_factory=list[str])
    environment: str = ""
    environment_id: int | None = None
    source: str | None = None
    vertical: str | None = None
    content_sha256: str | None = None
    version: int | None = None
    created_at: Moment | None = None
    updated_at: Moment | None = None


class Cloned(Shape):
    """What was copied from one environment to another."""

    cloned: int
    source: str | None = None
    target: str | None = None
    ids: list[str] = Field(default_factory=list[str])
