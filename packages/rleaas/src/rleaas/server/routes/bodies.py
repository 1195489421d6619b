"""What requests may say: one class per body, and what holds for all of them."""

import difflib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Literal, Self, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from rleaas.server.rules.catalogue import text_problem
from rleaas.server.rules.json_values import problem_with
from rleaas.server.rules.lifecycle import ReportType
from rleaas.server.rules.queue import HIGHEST_PRIORITY, LOWEST_PRIORITY
from rleaas.server.rules.report_facts import problem_at, problem_in

JsonObject = dict[str, object]
Count = Annotated[int, Field(gt=0, le=10**9, strict=True)]
Seed = Annotated[int, Field(ge=0, lt=2**32, strict=True)]
Priority = Annotated[int, Field(ge=LOWEST_PRIORITY, le=HIGHEST_PRIORITY, strict=True)]
MAX_EPISODES = 100_000


def _without_nul(text: str) -> str:
    problem = text_problem(text)
    if problem:
        raise ValueError(problem)
    return text


Label = Annotated[str, Field(max_length=200), AfterValidator(_without_nul)]
"""What a list shows of a job in a line, or finds something by."""


class Body(BaseModel):
    """A JSON object of known fields, without numbers or texts that JSON cannot carry."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _readable(cls, given: object) -> object:
        if not isinstance(given, dict):
            return given
        fields = cast("JsonObject", given)
        problem = problem_with(fields)
        if problem:
            raise ValueError(problem)
        for name in fields:
            if name not in cls.model_fields:
                near = difflib.get_close_matches(name, cls.model_fields, n=1)
                advice = f"did you mean {near[0]!r}?" if near else _known(cls.model_fields)
                raise ValueError(f"unknown field {name!r}; {advice}")
        return fields


class CreateEnvironment(Body):
    """The published fields of an environment, and `kwargs` for the maker of its source."""

    name: str
    description: str | None = Field(None, max_length=2000)
    source: str | None = Field(None, max_length=1000)
    kwargs: JsonObject | None = None
    config: JsonObject | None = None
    vertical: str | None = None
    category: str | None = None
    domain: str | None = None
    tags: list[str] | None = None
    tools: list[JsonObject | str] | None = None
    scenarios: list[JsonObject | str] | None = None
    verifiers: list[JsonObject | str] | None = None
    simulations: list[JsonObject | str] | None = None
    owner: str | None = None
    sdk: str | None = None
    compute: str | None = None
    license: str | None = None
    infrastructure: JsonObject | None = None
    infra: JsonObject | None = None
    verifier_configs: JsonObject | None = None
    repo: JsonObject | None = None
    metadata: JsonObject | None = None


class UpdateEnvironment(Body):
    """A new name, a new config, or both."""

    name: str | None = None
    config: JsonObject | None = None


class StartTraining(Body):
    """A training request.

    `verifier_id` is one of `verifier_ids`, and `verifier_config` the same as in the config; of the
    published model's other fields, those without effect here are known, to be refused by name.
    """

    algorithm: str = "PPO"
    num_episodes: Count | None = None
    max_steps: Count | None = None
    config: JsonObject | None = None
    model: Label | None = None
    run_name: Label | None = None
    seed: Seed | None = None
    priority: Priority = 0
    environment_version: Count | None = None
    environment_name: Label | None = None
    category: str | None = None
    resume_from_checkpoint: Label | None = None
    scenario_id: Label | None = None
    verifier_ids: list[Label] | None = None
    verifier_weights: JsonObject | list[float] | None = None
    verifier_id: Label | None = None
    verifier_conditions: list[JsonObject] | None = None
    verifier_config: JsonObject | None = None
    dataset_url: str | None = None
    actions: list[str] | None = None


class ModelAgent(Body):
    """A language model that plays the text face of a world, in place of a checkpoint.

    Without `base_url` it is the server's own (`rleaas serve --agent-url`), which alone is asked
    with a key.
    """

    kind: Literal["llm"]
    base_url: str | None = Field(None, min_length=1, max_length=2_000)
    model: str | None = Field(None, min_length=1, max_length=200)
    protocol: Literal["openai", "anthropic"] | None = None
    instructions: str | None = Field(None, min_length=1, max_length=20_000)
    timeout_seconds: float | None = Field(None, gt=0, le=600, allow_inf_nan=False)


class StartEvaluation(Body):
    """An evaluation of a checkpoint or an agent: each scenario with each seed, so many times.

    Seeds are listed, or counted from `base_seed`: `episodes` of them. Verifiers are those of the
    request, else a scenario's own, else the environment's.
    """

    agent_checkpoint_id: Label = ""
    agent: Annotated[str, Field(max_length=200)] | ModelAgent = ""
    environment_name: Label | None = None
    environment_version: Count | None = None
    seeds: list[Seed] | None = Field(None, min_length=1, max_length=MAX_EPISODES)
    episodes: int | None = Field(None, gt=0, le=MAX_EPISODES, strict=True)
    base_seed: Seed = 0
    max_episode_steps: Count | None = None
    success_threshold: float | None = None
    name: Label | None = None
    purpose: str = "evaluation"
    scenario_suite_id: Label | None = None
    scenario_ids: list[str] | None = Field(None, max_length=10_000)
    verifier_ids: list[str] | None = Field(None, max_length=100)
    repetitions: int = Field(1, gt=0, le=1_000, strict=True)
    num_workers: int = Field(1, gt=0, le=64, strict=True)
    pass_threshold: float | None = Field(None, allow_inf_nan=False)


class StartRollouts(StartEvaluation):
    """The published form of an evaluation; `comparison` and `agent_checkpoints` compare two."""

    max_steps: Count | None = None
    comparison: bool = False
    agent_checkpoints: list[str] | None = None


class Report(Body):
    """One thing that a worker tells about its job."""

    type: ReportType
    at: datetime | None = None
    data: JsonObject = Field(default_factory=dict[str, object])

    @model_validator(mode="after")
    def _can_be_read(self) -> Self:
        problem = problem_in(self.type, self.data)
        if problem is None and self.at is not None:
            problem = problem_at(self.at, datetime.now(UTC))
        if problem is not None:
            raise ValueError(problem)
        return self


class Reports(Body):
    """A batch of reports; a batch that comes twice, with the same `seq`, counts once."""

    seq: int = Field(ge=1, le=2**53)
    reports: list[Report] = Field(max_length=10_000)


def _known(fields: Mapping[str, object]) -> str:
    return f"the fields are {', '.join(sorted(fields))}"
