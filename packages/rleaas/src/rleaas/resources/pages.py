"""Lists that come in pages, read to their end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from pydantic import BaseModel
from rlcore import ConfigurationError, UnexpectedReply

from rleaas._flow import request as build
from rleaas._flow.context import Context
from rleaas._flow.decode import read_list
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow, Item, Request, Stream

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


def collect_from(
    shape: type[M],
    request_at: Callable[[int, int], Request],
    envelope: str,
    context: Context,
    *,
    limit: int | None = None,
) -> Flow[list[M]]:
    """Return the items of all pages of a list that counts places, or the first `limit` of them.

    Args:
        shape: of an item.
        request_at: the request for so many items from a place on.
        envelope: the field that has them.
        context: of the client.
        limit: how many at most.
    """
    if limit is not None and (type(limit) is not int or limit < 1):
        raise ConfigurationError(
            f"limit {limit!r} is not a number of items", hint="Leave it out to get them all."
        )
    found: list[M] = []
    while True:
        room = PAGE if limit is None else min(PAGE, limit - len(found))
        request = request_at(room, len(found))
        reply = yield from ask(request, context)
        items = read_list(shape, request, reply, envelope)[0]
        if found and items == found[: len(items)]:
            return found  # a server that knows no pages says everything each time
        found.extend(items)
        if len(items) != room or len(found) == limit:
            return found if limit is None else found[:limit]


def iterate_from(
    shape: type[M],
    request_at: Callable[[int, int], Request],
    envelope: str,
    context: Context,
) -> Stream[M]:
    """Yield what `collect_from` would return, asking for each page when it is reached."""
    before: list[M] = []
    place = 0
    while True:
        request = request_at(PAGE, place)
        reply = yield from ask(request, context)
        items = read_list(shape, request, reply, envelope)[0]
        if items == before and items:
            return
        for item in items:
            yield Item(item)
        if len(items) != PAGE:
            return
        before, place = items, place + len(items)


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
