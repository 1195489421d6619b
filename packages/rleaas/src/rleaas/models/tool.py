"""Tools that agents call in environments."""

from __future__ import annotations

from pydantic import Field

from rleaas.models.shape import JsonObject, Moment, Shape


class Tool(Shape):
    """A tool; without an environment it is for all of them."""

    id: str
    name: str = ""
    type: str = ""
    category: str = ""
    description: str = ""
    parameters: JsonObject = Field(default_factory=dict[str, object])
    environment: str = ""
    environment_id: int | None = None
    source: str | None = None
    compliance_tags: list[str] = Field(default_factory=list[str])
    authorization_required: bool = False
    docker_image: str | None = None
    spec: JsonObject | str | None = None
    endpoint: JsonObject | None = None
    preconditions: list[str | JsonObject] = Field(default_factory=list[str | JsonObject])
    effects: list[JsonObject] = Field(default_factory=list[JsonObject])
    returns: JsonObject | None = None
    ends_episode: bool = False
    suggested: JsonObject | None = None
    created_at: Moment | None = None
    updated_at: Moment | None = None


class ToolsPut(Shape):
    """What came of adding or changing tools."""

    status: str | None = None
    created: int = 0
    updated: int = 0
    tools: list[Tool] = Field(default_factory=list[Tool])
