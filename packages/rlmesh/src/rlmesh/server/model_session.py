"""One client's stream to a served model: its requests, its routes, and the order of its answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from rlmesh.protocol.editions import EDITION, runs
from rlmesh.protocol.model_faults import ModelFault, ModelFaultCode, ModelRefusal, fault_of
from rlmesh.protocol.model_requests import LONGEST_HORIZON, Ask, Name, Resolved, Result, Timing
from rlmesh.server.model_jobs import Chore, Prediction
from rlmesh.server.model_route import Route
from rlmesh.specs import EnvContract
from rlmesh.transport.model_wire import (
    Answer,
    Close,
    Closed,
    Grouped,
    Predict,
    Release,
    Released,
    Reset,
    Resolve,
    Results,
    WasReset,
    read_request,
    write_answer,
)

if TYPE_CHECKING:
    from rlmesh.server.model_service import ModelService

# A client that asks for more without waiting is not read from until some of it is answered.
MOST_IN_PROGRESS: Final = 32
Send = Callable[[bytes | None], None]


class ModelSession:
    """What one client has going with a served model.

    Its routes are its own: they go with its stream, and nobody else's go with them. What it asks is
    answered in order but for resolves, which overtake what is asked about other environments.

    Attributes:
        peer: where the client is.
        asked: how many requests it has made.
        in_progress: how many of them have no answer yet.
        faults: how many were answered by a fault, by its code.
    """

    def __init__(self, service: ModelService, peer: str, send: Send) -> None:
        self._service = service
        self._send = send
        self._driver = service.driver
        self._places = threading.Semaphore(MOST_IN_PROGRESS)
        self._lock = threading.Lock()
        self._pending: dict[str, int] = {}
        self._gone = False
        self.routes: dict[str, Route] = {}
        self.peer = peer
        self.started = time.monotonic()
        self.asked = 0
        self.in_progress = 0
        self.faults: dict[str, int] = {}

    def receive(self, data: bytes) -> None:
        """Take a request; its answer is sent when it is there.

        Raises:
            ProtocolException: the bytes are none.
        """
        arrived = time.perf_counter_ns()
        request_id, request = read_request(data)
        self._places.acquire()
        with self._lock:
            self.asked += 1
            self.in_progress += 1
        self._service.heard()
        answer = partial(self._answer, request_id, arrived)
        try:
            match request:
                case Predict():
                    self._predict(request.ask, answer)
                case Grouped():
                    self._predict_grouped(request, answer)
                case Resolve():
                    self._resolve(request, answer)
                case Reset():
                    self._reset(request, answer)
                case Release():
                    self._release(request, answer)
                case Close():
                    self._driver.put(Chore(partial(self._close, answer)))
                case _:
                    answer(ModelFault(ModelFaultCode.UNSUPPORTED, "the request asks for nothing"))
        except Exception as error:
            answer(fault_of(error))

    def part(self) -> None:
        """End what is open, where the server stops; in the driver's thread."""
        self._gone = True
        self._leave(None)

    def finish(self, *, gone: bool) -> None:
        """End the session once what was asked is answered; at once where the client has gone."""
        self._gone = gone
        if gone:
            self._send(None)
        self._driver.put(Chore(partial(self._leave, None)))

    def _predict(self, ask: Ask, answer: Callable[..., None]) -> None:
        route, name = self._route_of(ask)

        def deliver(result: Result, timing: Timing) -> None:
            self._finished(name.env_id)
            answer(result, timing)

        self._begun(name.env_id)
        self._driver.put(Prediction(route, name, ask, deliver, self._is_here))

    def _predict_grouped(self, request: Grouped, answer: Callable[..., None]) -> None:
        results: list[Result | None] = [None] * len(request.asks)
        left = len(request.asks)
        jobs: list[Prediction] = []

        # Both run in the driver's thread only, but for the faults found here, before any job.
        def deliver(place: int, env_id: str, result: Result, timing: Timing) -> None:
            nonlocal left
            self._finished(env_id)
            results[place] = result
            left -= 1
            if left == 0:
                answer(Results([one for one in results if one is not None]), timing)

        for place, ask in enumerate(request.asks):
            try:
                route, name = self._route_of(ask)
            except ModelRefusal as error:
                results[place] = error.fault
                left -= 1
                continue
            told = partial(deliver, place, name.env_id)
            jobs.append(Prediction(route, name, ask, told, self._is_here))
        if not jobs:
            answer(Results([one for one in results if one is not None]))
        for job in jobs:
            self._begun(job.name.env_id)
        for job in jobs:
            self._driver.put(job)

    def _route_of(self, ask: Ask) -> tuple[Route, Name]:
        name = ask.name
        if name is None or not name.request_id:
            missing = "context" if name is None else "request_id in its context"
            raise ModelRefusal(ModelFaultCode.INTERNAL, f"the request has no {missing}")
        route = self.routes.get(name.env_id) or self._service.route(name.env_id)
        if route is None:
            raise ModelRefusal(
                ModelFaultCode.INTERNAL,
                f"there is no route for the environment {name.env_id!r}: resolve it first",
            )
        route.check(ask)
        return route, name

    def _resolve(self, request: Resolve, answer: Callable[..., None]) -> None:
        name = _named(request.name)
        if isinstance(request.contract, ModelFault):
            answer(request.contract)
            return
        if not runs(request.edition):
            raise ModelRefusal(
                ModelFaultCode.INVALID_REQUEST,
                f"this server runs the workflow edition {EDITION!r}, not {request.edition!r}",
            )
        _check_horizon(request.horizon, self._service.model.native_chunk)
        resolve = partial(self._resolved, name, request, request.contract, answer)
        with self._lock:
            waits = bool(self._pending.get(name.env_id))
        if waits:
            self._driver.put(Chore(resolve))
        else:
            resolve()

    def _resolved(
        self, name: Name, request: Resolve, contract: EnvContract, answer: Callable[..., None]
    ) -> None:
        try:
            model, horizon = self._service.model, max(1, request.horizon)
            bound = model.resolve(contract, horizon=horizon, instruction=request.instruction)
            route = Route(
                model,
                bound,
                contract,
                spaces=request.spaces,
                horizon=horizon,
                instruction=request.instruction,
            )
        except Exception as error:
            answer(fault_of(error))
            return
        replaced = self.routes.get(name.env_id)
        self.routes[name.env_id] = route
        if replaced is not None:
            self._driver.put(Chore(replaced.end_all))
        answer(Resolved(model.native_chunk))

    def _reset(self, request: Reset, answer: Callable[..., None]) -> None:
        name = _named(request.name)
        route = self.routes.get(name.env_id) or self._service.route(name.env_id)

        def reset() -> None:
            try:
                if route is not None:
                    route.end(request.episode_ids)
                answer(WasReset())
            except Exception as error:
                answer(fault_of(error))

        self._driver.put(Chore(reset))

    def _release(self, request: Release, answer: Callable[..., None]) -> None:
        name = _named(request.name)

        def release() -> None:
            route = self.routes.pop(name.env_id, None)
            try:
                if route is not None:
                    route.end_all()
                answer(Released())
            except Exception as error:
                answer(fault_of(error))

        self._driver.put(Chore(release))

    def _close(self, answer: Callable[..., None]) -> None:
        self._leave(lambda: answer(Closed()))

    def _leave(self, say: Callable[[], None] | None) -> None:
        # In the driver's thread, so that everything that was asked before has its answer.
        try:
            self._end_episodes()
        finally:
            if say is not None:
                say()
            self._service.forget(self)
            self._send(None)

    def _end_episodes(self) -> None:
        while self.routes:
            _, route = self.routes.popitem()
            self._service.quietly(route.end_all)

    def _is_here(self) -> bool:
        return not self._gone

    def _begun(self, env_id: str) -> None:
        with self._lock:
            self._pending[env_id] = self._pending.get(env_id, 0) + 1

    def _finished(self, env_id: str) -> None:
        with self._lock:
            left = self._pending[env_id] - 1
            if left:
                self._pending[env_id] = left
            else:
                del self._pending[env_id]

    def _answer(
        self, request_id: str, arrived: int, answer: Answer, timing: Timing | None = None
    ) -> None:
        if isinstance(answer, ModelFault):
            code = _name_of(answer.code)
            self.faults[code] = self.faults.get(code, 0) + 1
        with self._lock:
            self.in_progress -= 1
            in_flight = self.in_progress
        known = timing or Timing(0)
        told = Timing(
            time.perf_counter_ns() - arrived,
            known.decode,
            known.user,
            known.encode,
            known.queue,
            in_flight,
            sum(route.held for route in tuple(self.routes.values())),
        )
        self._send(write_answer(request_id, answer, told))
        self._places.release()


def _named(name: Name | None) -> Name:
    if name is None or not name.env_id:
        missing = "context" if name is None else "env_id in its context"
        raise ModelRefusal(ModelFaultCode.INVALID_REQUEST, f"the request has no {missing}")
    return name


def _check_horizon(horizon: int, native_chunk: int | None) -> None:
    longest = LONGEST_HORIZON if native_chunk is None else min(native_chunk, LONGEST_HORIZON)
    if horizon > longest:
        made = "" if native_chunk is None else f": the model makes {native_chunk} at a time"
        raise ModelRefusal(
            ModelFaultCode.INTERNAL,
            f"the execution horizon {horizon} is longer than {longest}{made}",
        )


def _name_of(code: int) -> str:
    try:
        return ModelFaultCode(code).name.lower()
    except ValueError:
        return "unspecified"
