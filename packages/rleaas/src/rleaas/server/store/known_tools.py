"""Which tools an environment has, and whether verifiers and scenarios name others."""

from collections.abc import Iterable, Sequence

from rlcore import ConfigurationError
from sqlalchemy.orm import Session

from rleaas.server.rules.worlds import world_of
from rleaas.server.store import tools
from rleaas.server.store.tables import EnvironmentRow, ToolRow, VersionRow
from rleaas.verify import Definition
from rleaas.verify.tools import UNKNOWN_TOOL, nearest, require_tools, tools_named


def of_world(session: Session, version: VersionRow) -> set[str] | None:
    """All tools of an environment that serves a built-in world; None: it serves something else.

    Only a world tells all that can be called in it: other environments may have actions that
    nobody registered.
    """
    vertical = world_of(version.source)
    if vertical is None:
        return None
    registered = {row.name for row in _registered(session, version.environment)}
    return {tool.name for tool in vertical.tools} | registered


def require_of_verifier(
    session: Session, environment_id: int | None, definition: Definition
) -> None:
    """Refuse a verifier of a world's environment that names a tool which is not there.

    Raises:
        ConfigurationError: it does (`unknown_tool`), with the nearest one.
    """
    environment = _environment(session, environment_id)
    known = None if environment is None else of_world(session, environment.latest)
    if environment is not None and known is not None:
        require_tools(definition, known, f"environment {environment.name!r}")


def require_of_scenario(
    session: Session, environment_id: int | None, available: Sequence[object], scenario: str
) -> None:
    """Refuse a scenario of a world's environment with a tool which is not there.

    Raises:
        ConfigurationError: it has one (`unknown_tool`), with the nearest one.
    """
    environment = _environment(session, environment_id)
    known = None if environment is None else of_world(session, environment.latest)
    if environment is None or known is None:
        return
    ids = {row.id for row in _registered(session, environment)}
    for one in available:
        if one not in known and one not in ids:
            raise ConfigurationError(
                f"scenario {scenario!r}: available_tools: environment {environment.name!r} has no "
                f"tool {one!r}",
                code=UNKNOWN_TOOL,
                hint=nearest(str(one), known),
            )


def require_of_world(
    session: Session, version: VersionRow, definitions: Iterable[Definition]
) -> None:
    """Refuse verifiers that name a tool which the version's world does not have.

    Raises:
        ConfigurationError: one does (`unknown_tool`), with the nearest one.
    """
    known = of_world(session, version)
    if known is not None:
        for one in definitions:
            require_tools(one, known, f"environment {version.environment.name!r}")


def warnings_of(
    session: Session, version: VersionRow, definitions: Iterable[Definition]
) -> list[str]:
    """What a report says of tools that verifiers name and the environment does not list.

    Raises:
        ConfigurationError: it is a world, which has no such tool (`unknown_tool`).
    """
    if world_of(version.source) is not None:
        require_of_world(session, version, definitions)
        return []
    environment = version.environment
    listed = {row.name for row in _registered(session, environment)}
    return [
        f"{one.label} names the tool {tool!r}, which environment {environment.name!r} does not "
        "list: where it is none, what is said of it holds of no episode"
        for one in definitions
        for tool in dict.fromkeys(named.tool for named in tools_named(one))
        if tool not in listed
    ]


def _environment(session: Session, environment_id: int | None) -> EnvironmentRow | None:
    return None if environment_id is None else session.get(EnvironmentRow, environment_id)


def _registered(session: Session, environment: EnvironmentRow) -> Sequence[ToolRow]:
    rows, _ = tools.page(session, environment_id=environment.id, category=None, after=0, limit=0)
    return rows
