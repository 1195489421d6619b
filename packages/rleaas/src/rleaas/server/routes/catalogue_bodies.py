"""What the bodies about tools, verifiers, scenarios, suites and agents are made of."""

from typing import Annotated, cast

from fastapi import Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from rleaas.server.routes.bodies import JsonObject
from rleaas.server.rules.catalogue import id_problem, text_problem
from rleaas.server.rules.json_values import problem_with


def _checked_id(text: str) -> str:
    problem = id_problem(text)
    if problem:
        raise ValueError(problem)
    return text


def _checked_text(text: str) -> str:
    problem = text_problem(text)
    if problem:
        raise ValueError(problem)
    return text


def _checked_name(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty")
    return _checked_text(text)


Id = Annotated[str, AfterValidator(_checked_id)]
Text = Annotated[str, Field(max_length=20_000), AfterValidator(_checked_text)]
Name = Annotated[str, Field(max_length=200), AfterValidator(_checked_name)]
Word = Annotated[str, Field(max_length=200), AfterValidator(_checked_text)]
Reference = Annotated[str, Field(max_length=200), AfterValidator(_checked_text)]
Number = Annotated[int, Field(ge=0, le=10**18)]

Cursor = Annotated[str, Query(pattern="^[0-9]{0,18}$", description="`cursor` of the page before")]
PageSize = Annotated[int, Query(ge=0, le=1000, description="how many; 0 is all of them")]


class Record(BaseModel):
    """A JSON object of known fields and any others, which are kept beside them.

    A known field that is null or left out stays as it is.
    """

    model_config = ConfigDict(extra="allow")

    environment: Reference | Number | None = None
    environment_id: Reference | Number | None = None

    @model_validator(mode="before")
    @classmethod
    def _readable(cls, given: object) -> object:
        if not isinstance(given, dict):
            return given
        problem = problem_with(cast("JsonObject", given))
        if problem:
            raise ValueError(problem)
        return cast("object", given)

    @property
    def others(self) -> JsonObject:
        """The fields that have no place of their own."""
        return dict(self.model_extra or {})

    @property
    def named_environment(self) -> str | None:
        """The environment by name or number; "" is none, None leaves it as it is."""
        if self.environment not in (None, ""):
            return str(self.environment)
        if self.environment_id not in (None, ""):
            return str(self.environment_id)
        return "" if self.environment == "" else None
