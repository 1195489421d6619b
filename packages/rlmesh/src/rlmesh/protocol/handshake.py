"""The first exchange: who speaks which generation, and what each can do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from rlcore import IncompatibleError

from rlmesh.protocol.editions import EDITION, EDITIONS, GENERATION, agree, same_generation

# A lane can be stepped and reset by itself; with one environment that is always so.
SUBSET_STEP = "subset_step"
# Ours: every session has an environment of its own.
PRIVATE_SESSIONS = "rlmesh.env.private_sessions.v1"
# Ours: spaces beyond the seven of the protocol's core; a client that lacks it is refused.
MORE_SPACES = "rlmesh.spaces.more.v1"
# Ours: arrays in metadata keep their element type and shape.
TENSORS = "rlmesh.meta.tensors.v1"
# Ours: a broken session can be taken up again, with what was asked last.
RESUME = "rlmesh.env.resume.v1"
# Ours: whoever has to wait for a session is told the place in the queue.
QUEUE = "rlmesh.env.queue.v1"
# Ours: carriers of frames beside gRPC; what is offered stands in the peer's `extra`.
LANES = "rlmesh.env.lanes.v1"
# Ours: infos of many lanes are laid out in columns, one seed is for all of them, and a reset may
# have gymnasium's mask.
VECTORS = "rlmesh.env.vectors.v1"
# Ours: a session may have several environments of its own, each with episodes of its own.
SEVERAL = "rlmesh.env.several.v1"
# Ours: texts and several frames at once are rendered too, not only one frame.
RENDERINGS = "rlmesh.render.more.v1"
# Ours: whoever may step may ask what the server is doing.
INSPECT = "rlmesh.ops.inspect.v1"
# Ours, in what a server says about itself: somebody drives the one environment that all share.
TAKEN = "rlmesh.env.taken"
# Ours, in what a server says about itself: the return at which the environment's specification
# calls it solved. It is not in the contract, whose digest is the identity of what was registered
# before servers told it; and what an environment is does not depend on it.
REWARD_THRESHOLD = "rlmesh.env.reward_threshold"
YES = "true"
# What a client of this build can do, which it says in every handshake and at every session.
CLIENT_CAPABILITIES = frozenset({RESUME, QUEUE, LANES, VECTORS, MORE_SPACES, TENSORS, RENDERINGS})


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is speaking; it never decides anything."""

    component: str
    package_version: str = ""
    language: str = ""
    language_version: str = ""
    os: str = ""
    os_version: str = ""
    arch: str = ""
    framework_versions: Mapping[str, str] = field(default_factory=dict[str, str])
    extra: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Hello:
    """What a client says first."""

    generation: str
    editions: tuple[str, ...]
    preferred: str | None
    capabilities: Mapping[str, str]
    peer: Peer | None


@dataclass(frozen=True, slots=True)
class Welcome:
    """What a server answers."""

    compatible: bool
    editions: tuple[str, ...]
    preferred: str | None
    capabilities: Mapping[str, str]
    peer: Peer | None
    refusal: str | None = None

    @property
    def is_taken(self) -> bool:
        """Whether somebody was driving the one environment that all clients share."""
        return self.peer is not None and self.peer.extra.get(TAKEN) == YES

    @property
    def reward_threshold(self) -> float | None:
        """The return at which the environment's specification calls it solved, where it says so."""
        told = "" if self.peer is None else self.peer.extra.get(REWARD_THRESHOLD, "")
        try:
            found = float(told)
        except ValueError:
            return None
        return found if math.isfinite(found) else None

    def offers(self, capability: str) -> bool:
        """Tell whether the server has a capability."""
        return self.capabilities.get(capability) == YES


def greet(*, declared: str | None, peer: Peer) -> Hello:
    """Return what this build's client says."""
    capabilities = dict.fromkeys(sorted(CLIENT_CAPABILITIES), YES)
    return Hello(GENERATION, EDITIONS, declared or EDITION, capabilities, peer)


def answer(
    hello: Hello,
    *,
    declared: str | None,
    capabilities: Mapping[str, str],
    peer: Peer,
    demands: Mapping[str, str] = MappingProxyType({}),
) -> Welcome:
    """Return what this build's server answers; editions are the client's to choose.

    Args:
        hello: what the client said.
        declared: the edition that the server was started for.
        capabilities: what the server can do.
        peer: who the server is.
        demands: capabilities without which a client could not use what is served, with the reason.
    """
    refusal = None
    if not same_generation(hello.generation):
        spoken = hello.generation.strip()
        refusal = f"this server speaks {GENERATION!r}, the client speaks {spoken!r}"
    for capability, reason in demands.items():
        if refusal is None and hello.capabilities.get(capability) != YES:
            refusal = f"{reason}, which the client cannot read: it does not have {capability!r}"
    editions, edition = EDITIONS, declared or EDITION
    return Welcome(refusal is None, editions, edition, capabilities, peer, refusal)


def accept(welcome: Welcome, *, declared: str | None) -> str:
    """Return the workflow edition for the session.

    Raises:
        IncompatibleError: the server speaks another generation, or no edition suits both sides.
    """
    if not welcome.compatible:
        reason = welcome.refusal or f"it does not speak {GENERATION!r}"
        raise IncompatibleError(
            f"the server refused the handshake: {reason}",
            hint="Install matching versions of rlmesh on both sides.",
        )
    return agree(offered=welcome.editions, ceiling=welcome.preferred, declared=declared)
