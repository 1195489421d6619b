"""A client's side of a session with several environments: what each did, asked in one message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from rlcore import (
    Error,
    InvalidActionError,
    InvalidValueError,
    ProtocolException,
    SessionClosed,
)

from rlmesh.client.ahead import Ahead, is_under_way
from rlmesh.client.link import EnvLink
from rlmesh.client.refusals import is_not_ready
from rlmesh.client.strict_dtypes import strictly
from rlmesh.codec import Backend, compile_batch_codec, compile_codec
from rlmesh.protocol.faults import Fault, Occasion, error_of
from rlmesh.protocol.identifiers import time_ordered_id
from rlmesh.protocol.messages import Leaves, StepReply
from rlmesh.protocol.several import of_each
from rlmesh.spaces.coerce import shown

Info: TypeAlias = dict[str, object]
Outcome: TypeAlias = tuple[object, float, bool, bool, Info]


class _Seat:
    """What is known of one of the environments.

    Attributes:
        session: in which its episode runs; empty where none does.
        begun: the action of a step that was begun, as it was given and as it is sent.
        told: what that step gave, until somebody asks for it.
    """

    __slots__ = ("begun", "episode_id", "seed", "session", "steps", "told")

    def __init__(self) -> None:
        self.session = ""
        self.episode_id = ""
        self.seed: int | None = None
        self.steps = 0
        self.begun: tuple[object, Leaves] | None = None
        self.told: Outcome | Error | None = None


class SeveralLink:
    """Drives the environments of one session, each with episodes of its own.

    Steps are collected until all environments whose episode runs have begun one, or somebody waits
    for an answer; then one message asks for all of them. One that ends an episode, fails or is
    reset does not touch the others. Where the session is lost, the episodes of all are over; the
    next reset opens another.

    Args:
        link: the session.
        count: how many environments it has.
        backend: what arrays become.
        strict_dtypes: refuse actions whose element types are not exactly the declared ones.
    """

    def __init__(
        self, link: EnvLink, count: int, backend: Backend, *, strict_dtypes: bool = False
    ) -> None:
        self.link = link
        contract = link.contract
        one = compile_codec(contract.action_space, backend=backend, strict_nan=True)
        self._encode = strictly(contract.action_space, one.encode) if strict_dtypes else one.encode
        self._fixed = one.fixed_sizes is not None
        self._actions = compile_batch_codec(contract.action_space, backend=backend, strict_nan=True)
        self._observations = compile_batch_codec(contract.observation_space, backend=backend)
        self._seats = [_Seat() for _ in range(count)]
        self._all = tuple(range(count))
        self._running: set[int] = set()
        self._collected: list[int] = []
        self._asked: tuple[int, ...] = ()
        self._ahead: Ahead | None = None
        self._names: dict[tuple[int, ...], tuple[str, ...]] = {}

    def episode_id(self, place: int) -> str:
        """Return the id of an environment's episode; empty before its first reset."""
        return self._seats[place].episode_id

    def reset(
        self, place: int, seed: int | None, options: Mapping[str, object] | None
    ) -> tuple[object, Info]:
        """Start an episode in one environment, in a new session if the last one has ended.

        A step of it that was begun is waited for, and its outcome dropped.

        Raises:
            Error: as `EnvLink.ask_reset`.
        """
        seat = self._seats[place]
        if place in self._collected:
            self._collected.remove(place)
        if self._ahead is not None:
            self._receive()
        seat.begun = seat.told = None
        seat.session, seat.seed, seat.steps = "", seed, 0
        seat.episode_id = time_ordered_id()
        self._running.discard(place)
        self._names.clear()
        seeds = () if seed is None else (seed,)
        reply = self.link.ask_reset(seeds, options, (place,), (seat.episode_id,), partial=True)
        (told,) = of_each(reply.info, 1)
        if isinstance(told, Fault):
            raise ProtocolException("the reply to a reset tells of a failure")
        session = seat.session = self.link.session_id
        self._running = {one for one in self._running if self._seats[one].session == session}
        self._running.add(place)
        return self._decoded(reply.leaves, 1)[0], told

    def begin(self, place: int, action: object) -> None:
        """Take an environment's next action, and send it with those of the others.

        Raises:
            InvalidActionError: it is none of the space; nothing is sent.
            ProtocolException: a step of this environment is under way.
            SessionClosed: the session was lost or closed.
            EnvironmentException: there is no running episode.
        """
        seat = self._seats[place]
        if seat.session != self.link.session_id or not self.link.is_running:
            raise self._not_running(seat)
        if seat.begun is not None:
            raise is_under_way("begin_step")
        try:
            leaves = [bytes(leaf) for leaf in self._encode(action)]
        except InvalidValueError as error:
            raise InvalidActionError(error.message, path=error.path, hint=error.hint) from error
        seat.begun = action, leaves
        seat.steps += 1
        self._collected.append(place)
        if len(self._collected) >= len(self._running):
            self._send()

    def step(self, place: int, action: object) -> Outcome:
        """Return what a step of one environment gave, which is begun here where it was not.

        Raises:
            Error: as `begin`; or what went wrong with the step.
        """
        seat = self._seats[place]
        if seat.begun is None:
            self.begin(place, action)
        elif seat.begun[0] is not action:
            self._require_same(seat.begun, action)
        if seat.told is None:
            if place in self._collected:
                self._send()
            self._receive()
        told, seat.told, seat.begun = seat.told, None, None
        if told is None:
            raise self._not_running(seat)
        if isinstance(told, Error):
            raise told
        return told

    def begin_all(self, places: Sequence[int], actions: Sequence[object], *, at_once: bool) -> bool:
        """Take the next actions of several environments, where all of them can; whether they did.

        Where one cannot, nothing was begun, and `begin` tells of which it is and why. `at_once`
        they are sent without those of the others; an answer under way is waited for first.
        """
        seats, session = [self._seats[place] for place in places], self.link.session_id
        if not self.link.is_running or any(
            seat.session != session or seat.begun is not None for seat in seats
        ):
            return False
        encode = self._encode
        try:
            begun = [(action, [bytes(leaf) for leaf in encode(action)]) for action in actions]
        except InvalidValueError:
            return False
        for seat, one in zip(seats, begun, strict=True):
            seat.begun = one
            seat.steps += 1
        self._collected += places
        if at_once or len(self._collected) >= len(self._running):
            self._send()
        return True

    def step_all(self, places: Sequence[int]) -> list[Outcome | None]:
        """Return what the begun steps of several environments gave.

        None stands for one without an outcome, of which `step` tells why.
        """
        seats = [self._seats[place] for place in places]
        if any(seat.told is None and seat.begun is not None for seat in seats):
            if not self._collected_none(places):
                self._send()
            self._receive()
        outcomes: list[Outcome | None] = []
        for seat in seats:
            told = seat.told
            if told is None or isinstance(told, Error):
                outcomes.append(None)
            else:
                seat.told = seat.begun = None
                outcomes.append(told)
        return outcomes

    def _collected_none(self, places: Sequence[int]) -> bool:
        return not self._collected or not set(self._collected).intersection(places)

    def settle(self, place: int, operation: str) -> None:
        """Wait for what is under way, so that something else can be asked of the session.

        Raises:
            ProtocolException: that is a step of this environment.
        """
        if self._seats[place].begun is not None:
            raise is_under_way(operation)
        if self._ahead is not None:
            self._receive()

    def _send(self) -> None:
        """Send the steps that were collected, as one."""
        if self._ahead is not None:
            self._receive()
        places = tuple(sorted(self._collected))
        self._collected = []
        begun = [one for place in places if (one := self._seats[place].begun) is not None]
        names = self._names.get(places)
        if names is None:
            names = tuple([self._seats[place].episode_id for place in places])
            self._names[places] = names
        lanes = () if places == self._all else places
        actions = [action for action, _ in begun]
        self.link.last_action = actions
        ahead = Ahead(actions, self._joined(begun), 0, len(places), lanes, names)
        try:
            self.link.send_ahead(ahead)
        except Error:
            # The session was lost with the answer before it, or closed.
            for place in places:
                seat = self._seats[place]
                kept, seat.told = seat.begun, self._not_running(seat)
                seat.begun = kept
            self._running.difference_update(places)
        else:
            self._ahead, self._asked = ahead, places

    def _joined(self, begun: Sequence[tuple[object, Leaves]]) -> Leaves:
        if len(begun) == 1:
            return begun[0][1]
        if self._fixed:
            # Encodings of one length, side by side, are the encoding of all.
            return [b"".join(leaf) for leaf in zip(*[leaves for _, leaves in begun], strict=True)]
        values = [action for action, _ in begun]
        return [bytes(leaf) for leaf in self._actions.encode(values, len(values))]

    def _receive(self) -> None:
        """Wait for the answer to what was sent, and keep it for those who will ask."""
        ahead, self._ahead = self._ahead, None
        places, self._asked = self._asked, ()
        if ahead is None:
            return
        try:
            reply = self.link.receive_ahead(ahead)
        except InvalidActionError as error:
            if len(places) == 1:
                self._seats[places[0]].told = error
            else:
                self._ask_apart(places)  # nothing was stepped, and only one of them may be wrong
            return
        except Error as error:
            for place in places:
                self._seats[place].told = error
                self._seats[place].session = ""
            self._running.difference_update(places)
            return
        self._keep(places, reply)

    def _ask_apart(self, places: Sequence[int]) -> None:
        for place in places:
            seat = self._seats[place]
            leaves = seat.begun[1] if seat.begun is not None else ()
            try:
                reply = self.link.ask_step(leaves, 1, (place,), (seat.episode_id,))
            except Error as error:
                seat.told = error
            else:
                self._keep((place,), reply)

    def _keep(self, places: Sequence[int], reply: StepReply) -> None:
        count = len(places)
        observations = self._decoded(reply.leaves, count)
        told = of_each(reply.info, count) if reply.info else None
        terminated, truncated = reply.terminated, reply.truncated
        for at, place in enumerate(places):
            seat = self._seats[place]
            info = {} if told is None else told[at]
            if isinstance(info, Fault):
                seat.told = self._failure(seat, info)
                if not info.recoverable:
                    self._over(place)
                continue
            ended, cut = terminated[at] != 0, truncated[at] != 0
            if ended or cut:
                info.setdefault("completed_episodes", 1)
                self._running.discard(place)
            seat.told = observations[at], reply.rewards[at], ended, cut, info

    def _failure(self, seat: _Seat, fault: Fault) -> Error:
        occasion = Occasion(
            operation="step",
            environment=self.link.identity.name,
            session_id=self.link.session_id,
            episode_id=seat.episode_id or None,
            seed=seat.seed,
            step=seat.steps,
            action=None if seat.begun is None else shown(seat.begun[0]),
        )
        return error_of(fault, occasion)

    def _over(self, place: int) -> None:
        seat = self._seats[place]
        seat.session = ""
        self._running.discard(place)

    def _require_same(self, begun: tuple[object, Leaves], action: object) -> None:
        try:
            leaves = [bytes(leaf) for leaf in self._encode(action)]
        except InvalidValueError as error:
            raise InvalidActionError(error.message, path=error.path, hint=error.hint) from error
        Ahead(begun[0], begun[1], 0).require(leaves)

    def _decoded(self, leaves: Leaves, count: int) -> list[Any]:  # Any: the backend's values
        lane, codec = self.link.wires.lane, self._observations
        owns = lane is not None and lane.owns_memory
        try:
            tree = codec.decode_owned(leaves, count) if owns else codec.decode(leaves, count)
            return codec.split(tree, count)
        except InvalidValueError as error:
            raise ProtocolException(
                f"the observations from {self.link.identity.name!r} do not fit their space: {error}"
            ) from error

    def _not_running(self, seat: _Seat) -> Error:
        """Return why there is no step to be had: once, that the session was lost."""
        lost, seat.session = bool(seat.session), ""
        seat.begun = None
        link = self.link
        if lost and not link.was_interrupted:
            return SessionClosed(
                f"the session with {link.identity.name!r} was lost, and this episode with it",
                hint="Call reset() to start again.",
            )
        link.require_open()
        return is_not_ready(link.identity.name, was_interrupted=link.was_interrupted)
