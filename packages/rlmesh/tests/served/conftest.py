"""Servers of models on free ports, and a client that says exactly what a test wants said."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from rlmesh.numpy import Model, RemoteModel
from rlmesh.server.model_server import ModelServer
from rlmesh.specs import EnvContract, contract_of
from rlmesh.transport.addresses import parse_dial
from rlmesh.transport.connection import Connection
from rlmesh.transport.methods import MODEL_JOIN
from rlmesh.wire.model.v1 import model_pb2 as pb

SECONDS = 15.0


class SpacesEnv(gymnasium.Env[Any, Any]):
    """Only its spaces matter."""

    def __init__(self, observation: Any, action: Any) -> None:
        self.observation_space = observation
        self.action_space = action


FOUR = spaces.Box(-10.0, 10.0, (4,), np.float32)


def contract(observation: Any = FOUR, action: Any = None) -> EnvContract:
    """What an environment with these spaces promises."""
    return contract_of(SpacesEnv(observation, action or spaces.Discrete(5)))


@pytest.fixture
def contract_for() -> Callable[..., EnvContract]:
    return contract


class RawClient:
    """Sends messages as they are, and returns the answers as they come."""

    def __init__(self, address: str) -> None:
        self._connection = Connection(parse_dial(address))
        self._stream = self._connection.stream(MODEL_JOIN, timeout=SECONDS, again="")
        self._count = 0

    def send(self, **kind: Any) -> str:
        """Send a request of one kind; return its id."""
        self._count += 1
        name = str(self._count)
        self.send_bytes(pb.JoinRequest(request_id=name, **kind).SerializeToString())
        return name

    def send_bytes(self, data: bytes) -> None:
        self._stream.send(data, "test")

    def take(self) -> pb.JoinResponse:
        """Return the next answer, whichever it is."""
        return pb.JoinResponse.FromString(self._stream.next_reply("test"))

    def ask(self, **kind: Any) -> pb.JoinResponse:
        """Return the answer to a request."""
        name = self.send(**kind)
        answer = self.take()
        assert answer.request_id == name
        return answer

    def resolve(self, env_id: str = "e", **options: Any) -> pb.JoinResponse:
        """Open a route for an environment of four floats and five actions."""
        return self.ask(resolve_adapter=resolving(env_id, **options))

    def predict(self, *rows: tuple[str, int | None], env_id: str = "e", x: float = 0.0) -> Any:
        """Return the actions for rows, all of the same observation; an error as it came."""
        return actions_of(self.ask(predict=asking(*rows, env_id=env_id, x=x)))

    def leave(self) -> None:
        self._stream.close()
        self._connection.close()


def context(env_id: str) -> pb.AdapterContext:
    return pb.AdapterContext(session_id="s", env_id=env_id, request_id="r")


def resolving(env_id: str = "e", **options: Any) -> pb.ResolveAdapterRequest:
    from rlmesh.convert import contract_to_proto

    settings: Mapping[str, Any] = {
        "env_spec": contract_to_proto(contract()).spec,
        "execution_horizon": 1,
        "selected_workflow_edition": "2026.06",
        **options,
    }
    return pb.ResolveAdapterRequest(context=context(env_id), **settings)


def asking(*rows: tuple[str, int | None], env_id: str = "e", x: float = 0.0) -> pb.PredictRequest:
    request = pb.PredictRequest(context=context(env_id))
    request.observation.leaves.append(np.full((len(rows), 4), x, "<f4").tobytes())
    for episode_id, seed in rows:
        request.episode_info.add(episode_id=episode_id, seed=seed)
    return request


def actions_of(answer: pb.JoinResponse) -> Any:
    """The actions over time, each a list of the lanes'; or the error."""
    if answer.HasField("error"):
        return answer.error
    return [np.frombuffer(frame.leaves[0], "<i8").tolist() for frame in answer.predict.actions]


@pytest.fixture
def raw() -> Iterator[Callable[[ModelServer], RawClient]]:
    clients: list[RawClient] = []

    def dial(server: ModelServer) -> RawClient:
        clients.append(RawClient(server.address))
        return clients[-1]

    yield dial
    for client in clients:
        client.leave()


@pytest.fixture
def messages() -> Any:
    """What makes messages: `asking`, `resolving`, `context`, `actions_of`."""

    class Messages:
        asking = staticmethod(asking)
        resolving = staticmethod(resolving)
        context = staticmethod(context)
        actions_of = staticmethod(actions_of)

    return Messages


@pytest.fixture
def serve() -> Iterator[Callable[..., ModelServer]]:
    """Serve a model, or a function as one; it is shut down at the end of the test."""
    servers: list[ModelServer] = []

    def start(model: Any, *arguments: Any, **options: Any) -> ModelServer:
        made = model if isinstance(model, ModelServer) or hasattr(model, "serve") else Model(model)
        server = ModelServer(made, *arguments, **options)
        servers.append(server)
        server.start()
        return server

    yield start
    for server in servers:
        server.shutdown()


@pytest.fixture
def bound() -> Iterator[Callable[..., Any]]:
    """A policy of a served model, bound to an environment; closed at the end of the test."""
    policies: list[Any] = []

    def make(
        server: object, *spaces_of: Any, model: Any = RemoteModel, num_envs: int = 1, **options: Any
    ) -> Any:
        asked = {
            name: options.pop(name)
            for name in ("execution_horizon", "prefetch_lead", "instruction")
            if name in options
        }
        policy = model(server, **options).policy(**asked)
        policies.append(policy)
        policy.bind(contract(*spaces_of), num_envs=num_envs)
        return policy

    yield make
    for policy in policies:
        policy.close()


@pytest.fixture
def folder() -> Iterator[Path]:
    # Socket paths have to be short; pytest's own folders are not.
    with tempfile.TemporaryDirectory(prefix="rlm-") as made:
        yield Path(made)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What a hanging model waits for; opened at the end of the test."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def eventually() -> Callable[[Callable[[], object]], None]:
    """Wait until something is so that another thread brings about."""

    def wait(fact: Callable[[], object], seconds: float = 10.0) -> None:
        deadline = time.monotonic() + seconds
        while not fact():
            assert time.monotonic() < deadline, "it never came about"
            threading.Event().wait(0.01)

    return wait
