"""Tools that act in worlds: what of their records is secret, and where their calls go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rlcore import InvalidRequestError, Secret

from rleaas.server.rules.json_values import fields, text
from rleaas.server.rules.worlds import world_of

ENDPOINT: Final = "endpoint"
TOKEN: Final = "token"
SEALED_TOKEN: Final = "endpoint_token"
"""Where a record keeps the token of its endpoint, encrypted; it is never shown."""
HAS_TOKEN: Final = "has_token"
SERVERS_OWN: Final = ("addresses", "refused")
"""What a world is told of an endpoint beside its record."""
SCHEMES: Final = frozenset({"http", "https"})


def without_token(details: Mapping[str, object]) -> tuple[dict[str, object], Secret | None]:
    """The fields of a record without the token of its endpoint, and that token."""
    kept = {key: value for key, value in details.items() if key != SEALED_TOKEN}
    endpoint = dict(fields(kept.get(ENDPOINT)))
    if not endpoint:
        return kept, None
    for key in SERVERS_OWN:
        if key in endpoint:
            raise _refused(f"endpoint has no {key!r}; the server looks at where the URL leads")
    token = endpoint.pop(TOKEN, None)
    endpoint.pop(HAS_TOKEN, None)
    kept[ENDPOINT] = endpoint
    if token in (None, ""):
        return kept, None
    if not isinstance(token, str):
        raise _refused("endpoint.token is a text")
    return kept, Secret(token)


def shown(details: Mapping[str, object]) -> dict[str, object]:
    """The fields of a record as anybody may see them: with whether there is a token."""
    kept = {key: value for key, value in details.items() if key != SEALED_TOKEN}
    if ENDPOINT in kept:
        kept[ENDPOINT] = {**fields(kept[ENDPOINT]), HAS_TOKEN: SEALED_TOKEN in details}
    return kept


def url_of(record: Mapping[str, object]) -> str | None:
    """The URL that the record's endpoint has."""
    return text(fields(record.get(ENDPOINT)).get("url"))


def _refused(why: str) -> InvalidRequestError:
    return InvalidRequestError(why, status_code=422, code="invalid_tool")


def plays_tools(source: str | None) -> bool:
    """Whether what a source names is a world, in which registered tools act."""
    return world_of(source) is not None
