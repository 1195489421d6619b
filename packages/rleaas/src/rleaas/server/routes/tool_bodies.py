"""What requests about tools may say."""

from pydantic import Field

from rleaas.server.routes.bodies import Body, JsonObject
from rleaas.server.routes.catalogue_bodies import Id, Name, Number, Record, Reference, Text, Word


class ToolFields(Record):
    """A tool, or what changes of one; other fields are kept with it."""

    id: Id | None = None
    name: Name | None = None
    type: Word | None = None
    category: Word | None = None
    description: Text | None = None
    parameters: JsonObject | None = None
    source: Word | None = None
    compliance_tags: list[Word] | None = None
    authorization_required: bool | None = None
    docker_image: Word | None = None
    spec: JsonObject | str | None = None
    endpoint: JsonObject | None = None
    preconditions: list[str | JsonObject] | None = None
    effects: list[JsonObject] | None = None
    returns: JsonObject | None = None
    ends_episode: bool | None = None
    suggested: JsonObject | None = None


class PutTools(Body):
    """Tools to add or change, for one environment or, without one, for all."""

    tools: list[ToolFields] = Field(min_length=1, max_length=1000)
    environment: Reference | Number | None = None
    environment_id: Reference | Number | None = None
    environment_name: Reference | None = None
