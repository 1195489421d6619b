"""A served model in the place of a model: what a run can drive through `RemoteModel`."""

from __future__ import annotations

import copy
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pytest
import rlmesh.jax
import rlmesh.torch
from gymnasium import spaces
from rlmesh import (
    AccessDenied,
    AddressError,
    CallTimeout,
    ConfigurationError,
    EnvServer,
    IdentityError,
    IncompatibleError,
    InvalidObservationError,
    ModelException,
    RemoteModel,
    ServeOptions,
    ServerUnreachable,
    SessionClosed,
    Tensor,
    TlsError,
    UnsupportedError,
)
from rlmesh.numpy import Model
from rlmesh.numpy import RemoteModel as NumpyRemoteModel
from rlmesh.server.model_server import ModelServer

# Any, in this file: fixtures' classes, and values of any space.
Bound = Callable[..., Any]
ONES = np.ones(4, np.float32)
RICH = spaces.Dict(
    image=spaces.Box(0, 255, (2, 2, 3), np.uint8),
    words=spaces.Text(12),
    pair=spaces.Tuple((spaces.Discrete(4), spaces.MultiBinary(3))),
)


class Serve(Protocol):
    """The fixture that serves a model, or a function as one."""

    def __call__(
        self,
        model: Callable[[Any], Any] | Callable[[Any, Any], Any] | Model[Any, Any],
        /,
        *arguments: Any,
        **options: Any,
    ) -> Any: ...


def two(observation: Any) -> int:
    return 2


def test_making_one_dials_nothing() -> None:
    model = NumpyRemoteModel("127.0.0.1:1")

    assert model.address == "tcp://127.0.0.1:1"
    assert repr(model) == "RemoteModel('tcp://127.0.0.1:1')"
    with pytest.raises(ServerUnreachable, match=r"127\.0\.0\.1:1"):
        model.policy()


def test_parts_of_an_address_will_do() -> None:
    assert RemoteModel(host="localhost", port=7).address == "tcp://localhost:7"
    assert RemoteModel(path="/tmp/x.sock").address == "unix:///tmp/x.sock"
    with pytest.raises(AddressError):
        RemoteModel()
    with pytest.raises(AddressError, match="names an environment"):
        RemoteModel("rleaas://CartPole")
    with pytest.raises(ConfigurationError, match="request_timeout_seconds"):
        RemoteModel("h:1", request_timeout_seconds=-1)


def test_a_connection_is_not_copied() -> None:
    with pytest.raises(TypeError, match="make a new one"):
        copy.deepcopy(RemoteModel("h:1"))


def test_it_predicts_and_tells_the_model_of_ends(serve: Serve, bound: Bound) -> None:
    ended: list[str] = []
    policy = bound(serve(Model(two, name="two", digest="sha256:22", on_episode_end=ended.append)))
    asked, unasked = policy.begin("a", 1), policy.begin("b", 1)

    assert (policy.name, policy.digest, policy.framework) == ("two", "sha256:22", "numpy")
    assert policy.predict(ONES, asked) == 2
    policy.end(asked)
    policy.end(asked)
    policy.end(unasked)

    assert ended == ["a"]
    assert asked.predicted_now
    assert asked.timing.user > 0


def test_values_of_every_kind_arrive_as_they_are(serve: Serve, bound: Bound) -> None:
    policy = bound(serve(lambda observation: observation), RICH, RICH)
    episode = policy.begin("a", None)
    RICH.seed(3)
    for _ in range(5):
        sample = RICH.sample()
        action = policy.predict(sample, episode)
        assert np.array_equal(action["image"], sample["image"])
        assert action["words"] == sample["words"]
        assert action["pair"][0] == sample["pair"][0]
        assert np.array_equal(action["pair"][1], sample["pair"][1])


@pytest.mark.parametrize(
    ("client", "kind"),
    [
        (RemoteModel, Tensor),
        (NumpyRemoteModel, np.ndarray),
        (rlmesh.torch.RemoteModel, "torch.Tensor"),
        (rlmesh.jax.RemoteModel, "jax.Array"),
    ],
)
def test_actions_are_values_of_the_client_s_framework(
    serve: Serve, bound: Bound, client: Any, kind: Any
) -> None:
    box = spaces.Box(-5.0, 5.0, (3,), np.float32)
    server = serve(lambda observation: observation[:3] * 2)
    policy = bound(server, spaces.Box(-9.0, 9.0, (4,), np.float32), box, model=client)

    action = policy.predict(ONES, policy.begin("a", None))

    if isinstance(kind, str):
        module, _, name = kind.partition(".")
        kind = getattr(sys.modules[module], name)
    assert isinstance(action, kind)
    assert np.asarray(action).tolist() == [2.0, 2.0, 2.0]


def test_a_model_s_failure_is_typed_and_tells_where(serve: Serve, bound: Bound) -> None:
    def stumble(observation: Any) -> int:
        raise KeyError("gripper")

    server = serve(Model(stumble, name="pi"))
    policy = bound(server)
    episode = policy.begin("a", 5)

    with pytest.raises(ModelException, match="KeyError: 'gripper'") as caught:
        policy.predict(ONES, episode)

    error = caught.value
    assert isinstance(error, RuntimeError)
    assert (error.operation, error.model, error.address) == ("predict", "pi", server.address)
    assert (error.remote_type, error.episode_id, error.seed) == ("KeyError", "a", 5)
    assert "in stumble" in (error.remote_traceback or "")
    with pytest.raises(ModelException):
        policy.predict(ONES, episode)


def test_an_observation_that_is_none_is_refused_before_it_travels(
    serve: Serve, bound: Bound
) -> None:
    policy = bound(serve(two))
    episode = policy.begin("a", None)

    with pytest.raises(InvalidObservationError, match=r"has shape \[3\]"):
        policy.predict(np.ones(3), episode)
    assert policy.predict(ONES, episode) == 2


# Lanes and chunks


class Chunked(Model[Any, Any]):
    """Predicts chunks of three: tens of the observation and how far in the chunk."""

    def load(self) -> None:
        self.calls: list[int] = []

    def predict_chunk_batch(self, observations: Any, execution_horizon: int) -> Any:
        self.calls.append(len(observations))
        return observations[:, :1].astype(int) + np.arange(3)


def test_lanes_go_in_one_request_whatever_the_model_can_do(serve: Serve, bound: Bound) -> None:
    server = serve(lambda observation, context: int(observation[0]) + context["predict_index"])
    policy = bound(server, num_envs=3)
    episodes = [policy.begin(name, None) for name in "abc"]
    observed = np.repeat(np.arange(3, dtype=np.float32)[:, None], 4, axis=1)

    assert policy.predict_batch(observed, episodes).tolist() == [0, 1, 2]
    policy.end(episodes[1])
    episodes[1] = policy.begin("d", None)
    assert policy.predict_batch(observed, episodes).tolist() == [1, 1, 3]
    assert policy.predict_each(list(observed), episodes) == [2, 2, 4]


def test_chunks_are_replayed_before_the_model_is_asked_again(serve: Serve, bound: Bound) -> None:
    model = Chunked()
    policy = bound(serve(model), execution_horizon=3)
    episode = policy.begin("a", None)

    played = [policy.predict(np.full(4, x, np.float32), episode) for x in (0, 9, 9, 1, 9)]

    assert played == [0, 1, 2, 1, 2]
    assert model.calls == [1, 1]
    assert not episode.predicted_now
    assert episode.predict_index == 2


def test_lanes_whose_chunks_end_apart_are_asked_for_apart(serve: Serve, bound: Bound) -> None:
    model = Chunked()
    policy = bound(serve(model), num_envs=2, execution_horizon=3)
    episodes = [policy.begin("a", None), policy.begin("b", None)]
    observed = np.array([[0.0] * 4, [1.0] * 4], np.float32)

    assert policy.predict_batch(observed, episodes).tolist() == [0, 1]
    policy.end(episodes[0])
    episodes[0] = policy.begin("c", None)
    assert policy.predict_batch(observed, episodes).tolist() == [0, 2]
    assert [one.predicted_now for one in episodes] == [True, False]
    assert model.calls == [2, 1]


def test_the_next_chunk_is_asked_for_ahead(serve: Serve, bound: Bound) -> None:
    policy = bound(serve(Chunked()), execution_horizon=3, prefetch_lead=1)
    episode = policy.begin("a", None)

    played = [policy.predict(np.full(4, x, np.float32), episode) for x in (0, 2, 0, 0, 0)]

    # After the second observation one action is left: the next chunk is made of that observation.
    assert played == [0, 1, 2, 2, 3]
    policy.end(episode)


def test_a_horizon_beyond_the_model_s_chunk_is_refused_at_once(serve: Serve, bound: Bound) -> None:
    class Short(Chunked):
        native_chunk = 3

    with pytest.raises(ConfigurationError, match="1 to 3"):
        bound(serve(Short()), execution_horizon=4)


def test_an_instruction_for_a_model_without_a_place_for_it_is_refused(
    serve: Serve, bound: Bound
) -> None:
    with pytest.raises(ModelException, match="instruction"):
        bound(serve(two), instruction="stack the blocks")


# What goes wrong on the way


def test_a_hung_model_is_given_up_in_time_and_the_next_episode_asks_again(
    serve: Serve, bound: Bound, gate: threading.Event
) -> None:
    def hang(observation: Any) -> int:
        if observation[0] > 1:
            gate.wait(20)
        return 1

    server = serve(hang)
    policy = bound(server, request_timeout_seconds=0.4)
    episode = policy.begin("a", None)

    began = time.monotonic()
    with pytest.raises(CallTimeout, match="did not answer within") as caught:
        policy.predict(ONES * 2, episode)
    assert time.monotonic() - began < 2
    assert server.address in str(caught.value)
    with pytest.raises(SessionClosed, match="lost in this episode"):
        policy.predict(ONES, episode)
    policy.end(episode)
    gate.set()
    assert policy.predict(ONES, policy.begin("b", None)) == 1


def test_closing_never_hangs(serve: Serve, bound: Bound, gate: threading.Event) -> None:
    server = serve(lambda observation: int(gate.wait(20)))
    policy = bound(server, request_timeout_seconds=0.2)
    with pytest.raises(CallTimeout):
        policy.predict(ONES, policy.begin("a", None))

    began = time.monotonic()
    policy.close()
    policy.close()
    assert time.monotonic() - began < 2
    with pytest.raises(SessionClosed, match="closed"):
        policy.predict(ONES, policy.begin("b", None))
    gate.set()


def test_a_server_that_goes_away_is_named_and_found_again(bound: Bound) -> None:
    first = ModelServer(Model(two))
    first.start()
    address = first.address
    policy = bound(address)
    episode = policy.begin("a", None)
    policy.predict(ONES, episode)
    first.shutdown()

    with pytest.raises(SessionClosed) as caught:
        policy.predict(ONES, episode)
    assert address in str(caught.value)
    policy.end(episode)
    with pytest.raises(ServerUnreachable, match=address.removeprefix("tcp://")):
        policy.predict(ONES, policy.begin("b", None))

    with ModelServer(Model(two), address):
        assert policy.predict(ONES, policy.begin("c", None)) == 2


def test_another_model_at_the_same_address_is_noticed(bound: Bound) -> None:
    first = ModelServer(Model(two, digest="sha256:1"))
    first.start()
    policy = bound(first.address)
    first.shutdown()

    with ModelServer(Model(two, digest="sha256:2"), first.address):
        with pytest.raises(SessionClosed):  # the stream of the first one
            policy.predict(ONES, policy.begin("a", None))
        with pytest.raises(IdentityError, match="another model"):
            policy.predict(ONES, policy.begin("b", None))


def test_an_environment_is_no_model(serve: Serve) -> None:
    import gymnasium

    with (
        EnvServer(gymnasium.make("CartPole-v1")) as server,
        pytest.raises(UnsupportedError, match="RemoteEnv is for environments"),
    ):
        RemoteModel(server).policy()


def test_another_generation_is_refused(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(two)
    monkeypatch.setattr("rlmesh.protocol.handshake.GENERATION", "rlmesh-wire-v9")

    with pytest.raises(IncompatibleError, match="rlmesh-wire-v9"):
        RemoteModel(server).policy()


def test_tokens_and_tls_are_those_of_environments(serve: Serve, bound: Bound) -> None:
    server = serve(two, token="the-token", tls="auto")

    with pytest.raises(AccessDenied):
        RemoteModel(server, token="another").policy()
    with pytest.raises(TlsError):
        RemoteModel(server.address, token="the-token").policy()
    policy = bound(server.address, token="the-token", tls=server.tls_fingerprint)
    assert policy.predict(ONES, policy.begin("a", None)) == 2


def test_a_server_may_let_clients_stop_it(serve: Serve) -> None:
    assert RemoteModel(serve(two)).shutdown() is False
    server = serve(two, options=ServeOptions(allow_remote_shutdown=True))
    assert RemoteModel(server).shutdown("enough") is True
    assert server.wait(5)


INTERRUPTED = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np, gymnasium
from rlmesh.numpy import Model, RemoteModel
from rlmesh.specs import contract_of
policy = RemoteModel(sys.argv[1]).policy()
policy.bind(contract_of(gymnasium.make("CartPole-v1")), num_envs=1)
episode = policy.begin("a", None)
print("asking", flush=True)
try:
    policy.predict(np.zeros(4, np.float32), episode)
except KeyboardInterrupt:
    print(time.monotonic())
    policy.close()
    print(time.monotonic())
"""


def test_ctrl_c_ends_the_wait_for_a_silent_model_at_once(
    serve: Serve, gate: threading.Event
) -> None:
    inside = threading.Event()

    def hang(observation: Any) -> int:
        inside.set()
        gate.wait(30)
        return 0

    server = serve(hang)
    client = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, server.address],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert client.stdout is not None
    assert client.stdout.readline() == "asking\n"
    assert inside.wait(20)

    began = time.monotonic()
    os.kill(client.pid, signal.SIGINT)
    out, _ = client.communicate(timeout=30)
    gate.set()

    assert client.returncode == 0
    heard, closed = (float(text) - began for text in out.split())  # a clock that processes share
    assert heard < 2
    assert closed < 4
