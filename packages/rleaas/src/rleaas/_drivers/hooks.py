"""What a user's own code is told of each request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rleaas._flow.wire import Reply, Request

OnRequest = Callable[[Request], object]
OnReply = Callable[[Request, Reply, float], object]


@dataclass(frozen=True, slots=True)
class Hooks:
    """Called before each request is sent, and after each answer; what they raise is raised.

    Attributes:
        on_request: gets the request, which holds no credential.
        on_reply: gets the request, its answer, and the seconds that it took.
    """

    on_request: OnRequest | None = None
    on_reply: OnReply | None = None
