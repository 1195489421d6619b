"""Lists that come in pages, read to their end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel
from rlcore import ConfigurationError, UnexpectedReply

from rleaas._flow import request as build
from rleaas._flow.context import Context
from rleaas._flow.decode import read_list
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow, Item, Stream

M = TypeVar("M", bound=BaseModel)

PAGE = 500


def collect(
    shape: type[M],
    path: str,
    params: Mapping[str, str | int | None],
    envelope: str,
    context: Context,
    *,
    limit: int | None = None,
    cursor: str | None = None,
) -> Flow[list[M]]:
    """Return the items of all pages, or the first `limit` of them.

    Raises:
        UnexpectedReply: a page leads back to itself.
    """
    if limit is not None and (type(limit) is not int or limit < 1):
        raise ConfigurationError(
            f"limit {limit!r} is not a number of items", hint="Leave it out to get them all."
        )
    found: list[M] = []
    fixed = dict(params)
    while True:
        room = PAGE if limit is None else min(PAGE, limit - len(found))
        request = build.get(path, {**fixed, "limit": room, "cursor": cursor})
        reply = yield from ask(request, context)
        items, following = read_list(shape, request, reply, envelope)
        found.extend(items)
        if following is None or (limit is not None and len(found) >= limit):
            return found if limit is None else found[:limit]
        if following == cursor:
            raise UnexpectedReply(
                f"the page after {cursor!r} of {path} leads back to itself",
                request_id=reply.request_id,
            )
        cursor = following
        fixed["offset"] = None


def iterate(
    shape: type[M],
    path: str,
    params: Mapping[str, str | int | None],
    envelope: str,
    context: Context,
) -> Stream[M]:
    """Yield the items of all pages, asking for each page when it is reached.

    Raises:
        UnexpectedReply: a page leads back to itself.
    """
    cursor: str | None = None
    while True:
        request = build.get(path, {**params, "limit": PAGE, "cursor": cursor})
        reply = yield from ask(request, context)
        items, following = read_list(shape, request, reply, envelope)
        for item in items:
            yield Item(item)
        if following is None:
            return
        if following == cursor:
            raise UnexpectedReply(
                f"the page after {cursor!r} of {path} leads back to itself",
                request_id=reply.request_id,
            )
        cursor = following
