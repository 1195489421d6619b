"""How long a server lives, and how many it serves."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

from rlcore import ConfigurationError

from rlmesh.protocol.editions import declared_edition
from rlmesh.server.option_checks import (
    require_bool,
    require_port,
    require_seconds,
    require_whole,
)
from rlmesh.transport.limits import MESSAGE_BYTES

DRAIN_SECONDS = 5.0
CLOSE_SECONDS = 5.0
MAX_SESSIONS = 64
LEASE_SECONDS = 20.0
SHORTEST_LEASE_SECONDS = 0.1
ENV_START_SECONDS = 120.0
SPANS = (
    "idle_timeout_seconds",
    "drain_timeout_seconds",
    "close_timeout_seconds",
    "env_start_seconds",
)
SWITCHES = ("allow_remote_shutdown", "lanes", "inspectable")
ISOLATIONS = ("thread", "process")
SMALLEST_MESSAGE_LIMIT = 1024


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Limits of a server.

    Attributes:
        allow_remote_shutdown: whether a client may stop the server.
        idle_timeout_seconds: stop after so long without a request; None: never.
        drain_timeout_seconds: how long a shutdown waits for steps that are running; None: 5 s.
        close_timeout_seconds: how long it then waits for environments to close; None: 5 s.
        workflow_edition: the edition the environment was written for; None: this build's.
        max_sessions: how many clients may step at once, where each gets its own environment; one
            that asks for several counts as so many.
        max_message_bytes: the largest message, either way.
        lease_seconds: how long a session, and its environment, outlives a client that has gone: it
            may take half of it to notice that, and the other half the session waits for the
            client to come back. A client that says goodbye, or cannot resume, ends it at once.
        isolation: where the environment of a session lives that a factory made: `thread`, or
            `process` for one of its own, so that a crash ends that session only. A script that
            defines the factory is run again there: it has to serve under
            `if __name__ == "__main__":`.
        env_start_seconds: how long such a process may take until its environment is made.
        lanes: whether clients may step over frames as well, which is much faster than gRPC: a unix
            socket for clients on the same host, and a second TCP port where the server has one.
        lane_port: that second port; 0: a free one.
        inspectable: whether whoever may step may also ask which sessions there are, from where,
            and what they have done (`rlmesh inspect`).

    Raises:
        ConfigurationError: an option is not what it can be, or this build does not run the edition.
    """

    _: KW_ONLY
    allow_remote_shutdown: bool = False
    idle_timeout_seconds: float | None = None
    drain_timeout_seconds: float | None = None
    close_timeout_seconds: float | None = None
    workflow_edition: str | None = None
    max_sessions: int = MAX_SESSIONS
    max_message_bytes: int = MESSAGE_BYTES
    lease_seconds: float = LEASE_SECONDS
    isolation: Literal["thread", "process"] = "thread"
    env_start_seconds: float = ENV_START_SECONDS
    lanes: bool = True
    lane_port: int = 0
    inspectable: bool = True

    def __post_init__(self) -> None:
        for name in SPANS:
            seconds: object = getattr(self, name)
            if seconds is not None or name == "env_start_seconds":
                none = "" if name == "env_start_seconds" else ", or None"
                require_seconds(name, seconds, 0.0, f"Give a positive number of seconds{none}.")
        for name in SWITCHES:
            require_bool(name, getattr(self, name))
        require_whole("max_sessions", self.max_sessions, 1, None, "Allow one session at least.")
        require_whole(
            "max_message_bytes",
            self.max_message_bytes,
            SMALLEST_MESSAGE_LIMIT,
            MESSAGE_BYTES,
            f"Use {SMALLEST_MESSAGE_LIMIT} to {MESSAGE_BYTES}.",
        )
        if self.isolation not in ISOLATIONS:
            raise ConfigurationError(
                f"isolation is {self.isolation!r}", hint=f"It can be {', '.join(ISOLATIONS)}."
            )
        require_seconds(
            "lease_seconds",
            self.lease_seconds,
            SHORTEST_LEASE_SECONDS,
            f"Give {SHORTEST_LEASE_SECONDS:g} seconds or more.",
        )
        require_port("lane_port", self.lane_port)
        if self.lane_port and not self.lanes:
            raise ConfigurationError(
                f"lane_port is {self.lane_port} and lanes is False", hint="Give one or the other."
            )
        edition: object = getattr(self, "workflow_edition")  # noqa: B009
        if not isinstance(edition, str | None):
            raise ConfigurationError(
                f"workflow_edition is {edition!r}", hint="Give a text, or None."
            )
        object.__setattr__(self, "workflow_edition", declared_edition(self.workflow_edition))

    @property
    def drain_seconds(self) -> float:
        """How long a shutdown waits for steps that are running."""
        return DRAIN_SECONDS if self.drain_timeout_seconds is None else self.drain_timeout_seconds

    @property
    def close_seconds(self) -> float:
        """How long a shutdown waits for environments to close."""
        return CLOSE_SECONDS if self.close_timeout_seconds is None else self.close_timeout_seconds
