"""What a server answers: handshakes, sessions, and requests to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from rlcore.log import logger

from rlmesh.codec import NUMPY, compile_codec
from rlmesh.protocol.handshake import (
    INSPECT,
    LANES,
    MORE_SPACES,
    PRIVATE_SESSIONS,
    QUEUE,
    RESUME,
    REWARD_THRESHOLD,
    SEVERAL,
    SUBSET_STEP,
    TAKEN,
    TENSORS,
    VECTORS,
    YES,
    answer,
)
from rlmesh.protocol.offers import LaneOffer
from rlmesh.protocol.this_peer import this_peer
from rlmesh.server.environments import Environments
from rlmesh.server.inspection import Inspection
from rlmesh.server.options import ServeOptions
from rlmesh.server.session import Session
from rlmesh.server.sessions import Registry
from rlmesh.server.several_stage import makes_several
from rlmesh.spaces import needs_more_spaces
from rlmesh.specs import EnvContract
from rlmesh.transport.handshake_wire import (
    read_hello,
    read_shutdown,
    write_shutdown_answer,
    write_welcome,
)

log = logger("rlmesh", "server")


class EnvService:
    """The environment service of one server, and the sessions that are open in it."""

    def __init__(
        self,
        environments: Environments,
        *,
        options: ServeOptions,
        may_be_stopped: Callable[[], bool],
        stop: Callable[[], None],
        extra: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._environments = environments
        self.registry = Registry(
            environments,
            places=options.max_sessions if environments.private else 1,
            lease_seconds=options.lease_seconds,
        )
        self.inspection = Inspection(self.registry)
        self._options = options
        self._may_be_stopped = may_be_stopped
        self._stop = stop
        self._extra = extra
        self._last_request = time.monotonic()
        self.offer: LaneOffer | None = None
        self._demands = _demands(environments.contract)

    @property
    def capabilities(self) -> Mapping[str, str]:
        """What the server can do beyond the protocol's core."""
        return {
            # What steps its lanes together cannot step one of them.
            **({} if self._environments.sort == "vector" else {SUBSET_STEP: YES}),
            VECTORS: YES,
            TENSORS: YES,
            RESUME: YES,
            QUEUE: YES,
            **({PRIVATE_SESSIONS: YES} if self._environments.private else {}),
            **({SEVERAL: YES} if makes_several(self._environments) else {}),
            **({INSPECT: YES} if self._options.inspectable else {}),
        }

    @property
    def answer_bytes(self) -> int:
        """How many bytes the observations of all lanes may take together."""
        contract = self._environments.contract
        codec = compile_codec(contract.observation_space, backend=NUMPY)
        usual = codec.size_hint * max(1, contract.num_envs)
        return usual if codec.fixed_sizes is not None else usual * 2

    def handshake(self, request: bytes) -> bytes:
        """Answer a client's handshake."""
        self._last_request = time.monotonic()
        hello, peer, offer = read_hello(request), this_peer(), self.offer
        if extra := self._extra():
            peer = replace(peer, extra={**peer.extra, **extra})
        if offer is not None and hello.capabilities.get(LANES) == YES:
            peer = replace(peer, extra={**peer.extra, **offer.extra()})
        if (threshold := self._environments.reward_threshold) is not None:
            peer = replace(peer, extra={**peer.extra, REWARD_THRESHOLD: repr(threshold)})
        if not self._environments.private and self.registry.places.taken:
            peer = replace(peer, extra={**peer.extra, TAKEN: YES})
        welcome = answer(
            hello,
            declared=self._options.workflow_edition,
            capabilities=self.capabilities,
            peer=peer,
            demands=self._demands,
        )
        return write_welcome(welcome, self._environments.contract)

    def shutdown(self, request: bytes) -> bytes:
        """Answer a client's request to stop."""
        reason = read_shutdown(request)
        if not self._may_be_stopped():
            return write_shutdown_answer(
                accepted=False,
                message="this server does not let clients stop it (allow_remote_shutdown)",
            )
        log.info("a client asked the server to stop: %s", reason)
        threading.Thread(target=self._stop, daemon=True).start()
        return write_shutdown_answer(accepted=True, message="the server is shutting down")

    def sessions(self) -> list[Session]:
        """Return the sessions that hold or wait for an environment."""
        return self.registry.all()

    def busy(self) -> bool:
        """Tell whether a request is being answered."""
        return any(session.busy for session in self.sessions())

    def idle_since(self) -> float:
        """Return the monotonic time of the last request, now if one is being answered."""
        if self.busy():
            return time.monotonic()
        # What a session did still counts after it has gone.
        return max(self._last_request, self.registry.statistics().last_request)


def _demands(contract: EnvContract) -> Mapping[str, str]:
    """Return what a client must be able to do to use what is served, with the reasons."""
    spaces = {"observations": contract.observation_space, "actions": contract.action_space}
    odd = [name for name, space in spaces.items() if needs_more_spaces(space)]
    if not odd:
        return {}
    reason = f"the {' and '.join(odd)} of {contract.id!r} hold Sequence, Graph or OneOf spaces"
    return {MORE_SPACES: reason}
