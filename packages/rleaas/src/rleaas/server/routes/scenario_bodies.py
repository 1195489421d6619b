"""What requests about scenarios and suites may say."""

from typing import Annotated

from fastapi import Query
from pydantic import Field

from rleaas.server.routes.bodies import Body, JsonObject
from rleaas.server.routes.catalogue_bodies import Id, Name, Number, Record, Reference, Text, Word
from rleaas.server.rules.catalogue import SuitePurpose

Tier = Annotated[int, Field(ge=1, le=4, strict=True)]
Steps = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]
Tiers = Annotated[
    str, Query(pattern="^([1-4](,[1-4])*)?$", description="Tiers, separated by commas")
]
Words = Annotated[str, Query(max_length=2000, description="Words, separated by commas")]
ScenarioIds = Annotated[list[Id], Field(max_length=10_000)]


class ScenarioFields(Record):
    """A scenario, or what changes of one; other fields are kept with it."""

    id: Id | None = None
    name: Name | None = None
    tier: Tier | None = None
    task_prompt: Text | None = None
    max_steps: Steps | None = None
    tags: list[Word] | None = None
    source: Word | None = None
    product: Reference | None = None
    available_tools: list[Word] | None = None
    context_injection: JsonObject | None = None
    success_criteria_ref: Word | None = None


class SuiteFields(Record):
    """A suite, or what changes of one."""

    id: Id | None = None
    type: Word | None = None
    name: Name | None = None
    purpose: SuitePurpose | None = None
    scenario_ids: ScenarioIds | None = None


class ManyScenarios(Body):
    """Scenarios to add or change at once."""

    scenarios: list[ScenarioFields] = Field(min_length=1, max_length=1000)
    product: Reference | None = None


class FromLibrary(Body):
    """A scenario of the library to copy into an environment."""

    library_id: Id
    environment: Reference | Number | None = None
    environment_id: Reference | Number | None = None
    source: Word | None = None
