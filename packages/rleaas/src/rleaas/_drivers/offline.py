"""A driver that performs nothing: the methods of its resources return their flows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from types import MethodType
from typing import Any

from rleaas._flow.context import Context
from rleaas._flow.wire import Flow, Stream


@dataclass(slots=True)
class Clock:
    """A clock that goes only when told to, or while a scripted conversation pauses."""

    now: float = 0.0

    def __call__(self) -> float:
        """Return the time, in seconds."""
        return self.now


class Offline:
    """A driver for resources whose flows are played by `converse`; it performs nothing itself."""

    def __init__(self, *, clock: Clock | None = None, attempts: int = 3) -> None:
        self.clock = Clock() if clock is None else clock
        self.context = Context(
            attempts=attempts, clock=self.clock, random=Random(0), new_key=lambda: "key-1"
        )

    # What a method takes and gives is for the binding to say.
    def bind(self, flow: Callable[..., Flow[Any]], holder: object) -> Callable[..., Any]:
        """Return the function that makes the flow."""
        return MethodType(flow, holder)

    def bind_stream(self, flow: Callable[..., Stream[Any]], holder: object) -> Callable[..., Any]:
        """Return the function that makes the stream."""
        return MethodType(flow, holder)
