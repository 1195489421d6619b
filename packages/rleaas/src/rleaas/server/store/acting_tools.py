"""Registered tools that say what they do: kept with their tokens sealed, told to worlds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from rlcore import ConfigurationError, ConflictError, Error, InvalidRequestError, Secret
from sqlalchemy import select
from sqlalchemy.orm import Session

from rleaas.server.keys import ServerKeys
from rleaas.server.outbound import Outbound, is_public
from rleaas.server.rules import acting_tools as rules
from rleaas.server.rules import lifecycle
from rleaas.server.rules.json_values import fields, items
from rleaas.server.store import environments, tools
from rleaas.server.store.tables import EnvironmentRow, JsonObject, ToolRow, VersionRow
from rleaas.server.store.worlds import BUILT_IN
from rleaas.sims.user_tools import BEHAVIOUR, acts, endpoints_of, tools_of

PURPOSE = "tools"


@dataclass(frozen=True, slots=True)
class Kept:
    """A tool as it is now, and what came of keeping it."""

    row: ToolRow
    is_new: bool
    version: VersionRow | None
    """The version that the tool's environment has since, when its world is another now."""


def keep(session: Session, change: tools.ToolChange, keys: ServerKeys) -> Kept:
    """Add a tool, or change the one with its id or name.

    Raises:
        ConfigurationError: what it says of what it does makes no sense.
        ExpressionError: an expression of it cannot be read.
    """
    return _kept(session, tools.existing(session, change), change, keys)


def change(session: Session, row: ToolRow, said: tools.ToolChange, keys: ServerKeys) -> Kept:
    """Change a tool.

    Raises:
        ConfigurationError: what it says of what it does makes no sense.
        ExpressionError: an expression of it cannot be read.
    """
    return _kept(session, row, said, keys)


def delete(session: Session, row: ToolRow) -> VersionRow | None:
    """Delete a tool; returns the version that its environment has since, if it acted there."""
    record, environment_id = record_of(row), row.environment_id
    session.delete(row)
    session.flush()
    return _next_version(session, environment_id) if acts(record) else None


def _kept(
    session: Session, before: ToolRow | None, said: tools.ToolChange, keys: ServerKeys
) -> Kept:
    details, token = rules.without_token(said.details)
    was = None if before is None else (record_of(before), before.environment_id)
    if before is None:
        row, is_new = tools.upsert(session, replace(said, details=details))
    else:
        row, is_new = tools.apply(session, before, replace(said, details=details)), False
    _seal(row, None if was is None else rules.url_of(was[0]), token, keys)
    session.flush()
    record = record_of(row)
    _require_environment(row, record)
    if acts(record):
        _require_usable(session, row, _with_token(record, token))
    is_other = was is None or was != (record, row.environment_id)
    acted = was is not None and acts(was[0])
    if not is_other or not (acted or acts(record)):
        return Kept(row, is_new, None)
    return Kept(row, is_new, _next_version(session, row.environment_id))


def _require_environment(row: ToolRow, record: JsonObject) -> None:
    """Refuse a tool that says what it does and is of no environment: no world would call it."""
    said = [key for key in BEHAVIOUR if record.get(key) not in (None, [], {}, False)]
    if said and row.environment_id is None:
        raise ConfigurationError(
            f"tool {row.name!r} says what it does ({', '.join(said)}) and is of no environment, so "
            "that no world would call it",
            code="tool_needs_environment",
            hint="Register it for each environment whose world shall have it",
        )


def _seal(row: ToolRow, url_before: str | None, token: Secret | None, keys: ServerKeys) -> None:
    kept = dict(row.details)
    if token is not None:
        kept[rules.SEALED_TOKEN] = keys.seal(PURPOSE, token)
    elif rules.url_of(kept) != url_before:
        kept.pop(rules.SEALED_TOKEN, None)  # a token goes where it was given for only
    row.details = kept


def record_of(row: ToolRow) -> JsonObject:
    """The record of a tool, with its token as it is kept."""
    return {
        **row.details,
        "name": row.name,
        "type": row.type,
        "category": row.category,
        "description": row.description,
        "parameters": row.parameters,
    }


def told(session: Session, version: VersionRow, keys: ServerKeys) -> list[JsonObject]:
    """What the process of a version is told of tools: those that acted when it was made.

    Their tokens are in it, and nothing was looked at yet of where their calls go.
    """
    own = (
        select(ToolRow)
        .where(
            ToolRow.environment_id == version.environment_id,
            ToolRow.created_at <= version.created_at,
        )
        .order_by(ToolRow.row_id)
    )
    records = [record for row in session.scalars(own) if acts(record := record_of(row))]
    made: list[JsonObject] = []
    for record in records:
        sealed = record.pop(rules.SEALED_TOKEN, None)
        token = keys.unseal(PURPOSE, sealed) if isinstance(sealed, str) else None
        made.append(_with_token(record, token))
    return made


def looked_at(told: object, outbound: Outbound) -> list[JsonObject]:
    """The records with the addresses where their calls go, or why these are not made."""
    return [_looked_at(fields(record), outbound) for record in items(told)]


def _looked_at(record: JsonObject, outbound: Outbound) -> JsonObject:
    urls = endpoints_of(record)
    if not urls:
        return record
    endpoint = {"url": urls[0], **fields(record.get(rules.ENDPOINT))}
    try:
        endpoint["addresses"] = list(permitted(urls[0], outbound))
    except Error as error:
        endpoint["refused"] = str(error)
    return {**record, rules.ENDPOINT: endpoint}


def require_permitted(details: Mapping[str, object], outbound: Outbound) -> None:
    """Refuse a record whose calls would go where this server must not reach.

    Raises:
        InvalidRequestError: they would.
        ConfigurationError: the record makes no sense.
    """
    for url in endpoints_of({"name": "", **details}):
        permitted(url, outbound)


def permitted(url: str, outbound: Outbound) -> tuple[str, ...]:
    """The addresses of a URL that may be asked.

    Raises:
        InvalidRequestError: it may not.
    """
    place = outbound.permit(url, rules.SCHEMES)
    if url.startswith("http://") and any(map(is_public, place.addresses)):
        raise InvalidRequestError(
            f"the endpoint {url[:200]!r} would get arguments over the internet in the clear",
            status_code=422,
            code="endpoint_not_https",
            hint="Use https://",
        )
    return place.addresses


def _with_token(record: JsonObject, token: Secret | None) -> JsonObject:
    if token is None:
        return record
    endpoint = {**fields(record.get(rules.ENDPOINT)), rules.TOKEN: token.reveal()}
    return {**record, rules.ENDPOINT: endpoint}


def _next_version(session: Session, environment_id: int | None) -> VersionRow | None:
    environment = None if environment_id is None else session.get(EnvironmentRow, environment_id)
    if environment is None or not rules.plays_tools(environment.latest.source):
        return None
    latest = environment.latest
    if latest.status == lifecycle.REGISTERED and latest.contract_digest is None:
        latest.created_at = datetime.now(UTC)  # nobody was told anything of it yet
        return latest
    return environments.repeat(session, environment)


def _require_usable(session: Session, row: ToolRow, record: JsonObject) -> None:
    made = tools_of(record)
    if row.details.get("source") == BUILT_IN:
        raise ConflictError(
            f"tool {row.name!r} is built in, and does what its world says",
            code="built_in_tool",
            hint="Register another tool, with another name",
        )
    others = select(ToolRow.name).where(
        ToolRow.environment_id == row.environment_id, ToolRow.row_id != row.row_id
    )
    taken = set(session.scalars(others)) & {tool.name for tool in made}
    if taken and row.environment_id is not None:
        raise ConflictError(
            f"the environment has another tool {min(taken)!r}",
            code="name_taken",
            hint="Give it another name, or change that one",
        )
