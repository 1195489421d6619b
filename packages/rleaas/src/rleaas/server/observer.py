"""What the observability agent can be asked: tools that read the organisation's records."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field, ValidationError
from rlcore import InvalidRequestError
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from rleaas.server import render
from rleaas.server.routes.bodies import Body, JsonObject
from rleaas.server.rules import lifecycle
from rleaas.server.store import environments
from rleaas.server.store.jobs import TRAINING
from rleaas.server.store.tables import JobRow, KpiRow, VersionRow

Limit = Annotated[int, Field(ge=1, le=500, description="how many at most")]
_REASONS: Final = 10


class ListEnvironments(Body):
    """Which environments to list."""

    status: str | None = Field(None, description="only those with this status")
    vertical: str | None = Field(None, description="only those of this vertical")
    limit: Limit = 100


class OneEnvironment(Body):
    """Which environment."""

    environment: str = Field(description="its name, or its number", min_length=1)


class ListJobs(Body):
    """Which jobs to list."""

    environment: str | None = Field(None, description="only jobs of this environment")
    status: str | None = Field(None, description="such as running or failed")
    kind: str | None = Field(None, description="training or evaluation")
    limit: Limit = 50


class Nothing(Body):
    """It takes no parameters."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A question with the form of its parameters."""

    name: str
    description: str
    parameters: type[Body]
    answer: Callable[[Session, Body], JsonObject]


def described() -> list[JsonObject]:
    """The tools as an agent is told of them."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters.model_json_schema(),
        }
        for tool in TOOLS.values()
    ]


def invoke(session: Session, name: str, params: Mapping[str, object]) -> JsonObject:
    """Answer a question.

    Raises:
        InvalidRequestError: there is no such tool, or it does not take these parameters.
        EnvironmentNotFound: the parameters name an environment that does not exist.
    """
    tool = TOOLS.get(name)
    if tool is None:
        raise InvalidRequestError(
            f"there is no tool {name!r}",
            status_code=400,
            code="unknown_tool",
            hint=f"The tools are {', '.join(TOOLS)}",
        )
    try:
        given = tool.parameters.model_validate(dict(params))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidRequestError(
            f"tool {name!r} does not take these params: {where or 'params'}: {first['msg']}"
        ) from error
    return tool.answer(session, given)


def health(session: Session) -> JsonObject:
    """How things are: `degraded` where an environment has failed."""
    by_status = _environments_by_status(session)
    failed = environments.page(
        session, status=lifecycle.FAILED, vertical=None, after=0, limit=_REASONS
    )
    return {
        "status": "degraded" if failed else "ok",
        "environments": by_status,
        "jobs": _jobs_by_status(session),
        "warnings": [
            f"environment {row.name!r} has failed: {row.latest.status_reason}" for row in failed
        ],
    }


def _list_environments(session: Session, given: Body) -> JsonObject:
    assert isinstance(given, ListEnvironments)
    rows = environments.page(
        session, status=given.status, vertical=given.vertical, after=0, limit=given.limit
    )
    keys = ("id", "name", "status", "status_reason", "version", "vertical", "source")
    shown = [render.environment(row.latest) for row in rows]
    return {"environments": [{key: one[key] for key in keys} for one in shown]}


def _get_environment(session: Session, given: Body) -> JsonObject:
    assert isinstance(given, OneEnvironment)
    return render.environment(environments.find_version(session, given.environment))


def _get_environment_kpis(session: Session, given: Body) -> JsonObject:
    assert isinstance(given, OneEnvironment)
    row = environments.find(session, given.environment)
    latest = session.scalar(
        select(KpiRow).where(KpiRow.environment_id == row.id).order_by(KpiRow.id.desc()).limit(1)
    )
    return {
        "environment_name": row.name,
        "kpis": {} if latest is None else latest.figures,
        "checkpoint": None if latest is None else latest.checkpoint_id,
        "at": None if latest is None else render.moment(latest.at),
        "jobs": _jobs_by_status(session, row.id),
    }


def _list_jobs(session: Session, given: Body) -> JsonObject:
    assert isinstance(given, ListJobs)
    query = select(JobRow).order_by(JobRow.created_at.desc(), JobRow.id.desc()).limit(given.limit)
    if given.environment is not None:
        row = environments.find(session, given.environment)
        query = query.where(JobRow.version_id.in_([version.id for version in row.versions]))
    if given.status is not None:
        query = query.where(JobRow.status == given.status)
    if given.kind is not None:
        query = query.where(JobRow.kind == given.kind)
    return {
        "jobs": [
            {
                "id": job.id,
                "kind": job.kind,
                "status": job.status,
                "progress": job.progress,
                "error": job.error,
                "environment_name": job.version.environment.name,
                "environment_version": job.version.version,
                "created_at": render.moment(job.created_at),
                "completed_at": render.moment(job.completed_at),
            }
            for job in session.scalars(query)
        ]
    }


def _check_health(session: Session, given: Body) -> JsonObject:
    assert isinstance(given, Nothing)
    return health(session)


def _get_stats(session: Session, given: Body) -> JsonObject:
    assert isinstance(given, Nothing)
    return {
        "environments": _environments_by_status(session),
        "training_jobs": _jobs_by_status(session, kind=TRAINING),
        "jobs": _jobs_by_status(session),
    }


def _environments_by_status(session: Session) -> JsonObject:
    rows = environments.page(session, status=None, vertical=None, after=0, limit=None)
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.latest.status] = counts.get(row.latest.status, 0) + 1
    return {"total": len(rows), **counts}


def _jobs_by_status(
    session: Session, environment_id: int | None = None, kind: str | None = None
) -> JsonObject:
    query = select(JobRow.status, func.count()).group_by(JobRow.status)
    if environment_id is not None:
        query = query.join(VersionRow, VersionRow.id == JobRow.version_id).where(
            VersionRow.environment_id == environment_id
        )
    if kind is not None:
        query = query.where(JobRow.kind == kind)
    counts: dict[str, int] = {row[0]: row[1] for row in session.execute(query)}
    return {"total": sum(counts.values()), **counts}


TOOLS: Final[Mapping[str, Tool]] = {
    tool.name: tool
    for tool in (
        Tool(
            "list_environments",
            "The registered environments, with how they are.",
            ListEnvironments,
            _list_environments,
        ),
        Tool(
            "get_environment",
            "Everything that is known of one environment.",
            OneEnvironment,
            _get_environment,
        ),
        Tool(
            "get_environment_kpis",
            "The newest figures of an environment, and how its jobs went.",
            OneEnvironment,
            _get_environment_kpis,
        ),
        Tool("list_jobs", "Training jobs and evaluations, newest first.", ListJobs, _list_jobs),
        Tool("check_health", "How the platform is, with warnings.", Nothing, _check_health),
        Tool("get_stats", "How many environments and jobs there are.", Nothing, _get_stats),
    )
}
