"""What requests about agents may say; the published client sends new ones as a form."""

import json
from collections.abc import Mapping
from typing import Annotated, cast
from urllib.parse import parse_qsl

from fastapi.exceptions import RequestValidationError
from pydantic import Field, ValidationError
from rlcore import InvalidRequestError
from starlette.requests import Request

from rleaas.server.routes.bodies import Body, Count, JsonObject
from rleaas.server.routes.catalogue_bodies import Id, Name, Number, Record, Reference, Word
from rleaas.server.rules.agent_exports import ExportFormat
from rleaas.server.rules.catalogue import AgentFramework

# It is a part of paths and of file names, and people write it there as it is.
_AgentId = Annotated[Id, Field(pattern=r"^[A-Za-z0-9._:-]+$")]
_LISTS = ("compatible_categories", "tool_permissions")
_FORM = "application/x-www-form-urlencoded"


class AgentFields(Record):
    """An agent, or what changes of one; other fields are kept with it."""

    id: _AgentId | None = None
    name: Name | None = None
    base_model: Word | None = None
    model_ref: Word | None = None
    framework: AgentFramework | None = None
    trainable: bool | None = None
    compatible_categories: list[Word] | None = None
    tool_permissions: list[Word] | None = None


class RollBack(Body):
    """The version to go back to, such as `v2`."""

    version: Word | Number


class DryRun(Body):
    """Episodes to play in an environment, seeded from `base_seed` on."""

    environment_id: Reference | Number
    episodes: Annotated[int, Field(ge=1, le=1000, strict=True)] = 5
    base_seed: Annotated[int, Field(ge=0, lt=2**32, strict=True)] = 0
    max_episode_steps: Count | None = None


class Deploy(Body):
    """The environment to bind the agent to, and what for."""

    environment_id: Reference | Number
    label: Word | None = None


class Export(Body):
    """A checkpoint to give out, and in which form."""

    checkpoint_id: Word
    format: ExportFormat = "huggingface"
    include_metadata: bool = True
    include_audit_hash: bool = True


async def agent_fields(request: Request) -> AgentFields:
    """Read a new agent from a JSON body or from a form.

    Raises:
        InvalidRequestError: it is neither.
        RequestValidationError: a field is wrong.
    """
    raw = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        given = _from_form(raw.decode()) if kind == _FORM else json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InvalidRequestError(
            f"the body is neither JSON nor a form: {error}",
            status_code=400,
            code="invalid_json",
        ) from error
    try:
        return AgentFields.model_validate(given)
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False)) from error


def _from_form(text: str) -> JsonObject:
    pairs: Mapping[str, str] = dict(parse_qsl(text, keep_blank_values=True, strict_parsing=True))
    given: JsonObject = dict(pairs)
    for name in _LISTS:
        if name in pairs:
            given[name] = cast("object", json.loads(pairs[name] or "[]"))
    return given
