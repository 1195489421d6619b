"""Steps take the fastest way that works, and each way is the same to its users."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import rlmesh
from gymnasium import spaces
from rlcore import (
    AccessDenied,
    CallTimeout,
    ConfigurationError,
    EnvironmentException,
    InvalidActionError,
    ProtocolException,
    Secret,
    ServerUnreachable,
    SessionBusy,
    SessionClosed,
    UnsupportedError,
)
from rlmesh.client import lanes
from rlmesh.numpy import RemoteEnv, RemoteVectorEnv
from rlmesh.protocol.offers import LaneOffer
from rlmesh.server.env_server import EnvServer
from rlmesh.server.options import ServeOptions
from rlmesh.transport import frame_dial
from rlmesh.transport.frame_lane import FrameLane
from rlmesh.transport.frames import (
    ADMITTED,
    HEAD,
    MESSAGE,
    OPEN,
    REFUSED,
    STEP,
    WELCOME,
    FrameEnd,
)
from rlmesh.transport.grpc_lane import GrpcLane

Serve = Callable[..., EnvServer]
LANES = ("grpc", "local", "tcp")


@pytest.fixture(autouse=True)
def no_memory_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "_avoided", {})
    monkeypatch.setattr(lanes, "_warned", set[str]())
    monkeypatch.delenv(lanes.LANE_VARIABLE, raising=False)


def way_of(env: Any) -> str:
    lane = env._link.wires.lane
    return "grpc" if isinstance(lane, GrpcLane) else lane.name


def offer_of(server: Any) -> LaneOffer:
    offer: LaneOffer | None = server._service.offer
    assert offer is not None
    return offer


def offers(monkeypatch: pytest.MonkeyPatch, offer: LaneOffer) -> None:
    """Let clients believe that this is what servers offer."""

    def read(_: object) -> LaneOffer:
        return offer

    monkeypatch.setattr(lanes, "read_offer", read)


def lane_of(env: Any) -> Any:
    lane = env._link.wires.lane
    assert isinstance(lane, FrameLane)
    return lane


def test_on_the_same_host_steps_take_the_local_way(
    serve: Serve, scripted: Any, either_address: str
) -> None:
    server = serve(scripted(), either_address)
    with RemoteEnv(server) as env:
        env.reset()
        assert way_of(env) == "local"
        assert env.step(0)[0].tolist() == [1, 1]


@pytest.mark.parametrize("lane", LANES)
def test_the_way_can_be_chosen(serve: Serve, scripted: Any, lane: Any) -> None:
    with RemoteEnv(serve(scripted()), lane=lane) as env:
        env.reset()
        assert way_of(env) == lane


def test_the_environment_variable_chooses_where_no_argument_does(
    serve: Serve, scripted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLMESH_LANE", "grpc")
    server = serve(scripted())
    with RemoteEnv(server) as env:
        env.reset()
        assert way_of(env) == "grpc"
    with RemoteEnv(server, lane="local") as env:
        env.reset()
        assert way_of(env) == "local"
    monkeypatch.setenv("RLMESH_LANE", "carrier pigeon")
    with pytest.raises(ConfigurationError, match="RLMESH_LANE is 'carrier pigeon'"):
        RemoteEnv(server)


def test_a_way_that_nobody_knows_is_refused() -> None:
    options: dict[str, Any] = {"lane": "pigeon"}
    with pytest.raises(ConfigurationError, match=r"lane is 'pigeon'.*auto, local, tcp, grpc"):
        RemoteEnv("127.0.0.1:1", **options)


def test_a_server_can_do_without_lanes(serve: Serve, scripted: Any) -> None:
    server = serve(scripted(), options=ServeOptions(lanes=False))
    with RemoteEnv(server) as env:
        env.reset()
        assert way_of(env) == "grpc"
    for lane in ("tcp", "local"):
        with pytest.raises(UnsupportedError, match=f"offers no lane '{lane}'"):
            RemoteEnv(server, lane=lane)


def test_the_second_port_can_be_named(serve: Serve, scripted: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(rlmesh.BindError, match=f"lanes at tcp://127.0.0.1:{port}"):
            EnvServer(scripted(), options=ServeOptions(lane_port=port))
    server = serve(scripted(), options=ServeOptions(lane_port=port))
    assert offer_of(server).port == port
    with RemoteEnv(server, lane="tcp") as env:
        env.reset()
    with pytest.raises(ConfigurationError):
        ServeOptions(lane_port=70_000)


class Rich:
    """An environment with every kind of leaf, an info in each answer, and numbers to compare."""

    observation_space = spaces.Dict(
        flag=spaces.MultiBinary(3),
        image=spaces.Box(0, 255, (120, 160, 3), np.uint8),
        large=spaces.Box(-1, 1, (300, 301), np.float64),
        odd=spaces.Box(0, 255, (5,), np.uint8),
        small=spaces.Box(-1, 1, (3,), np.float32),
        text=spaces.Text(40),
    )
    action_space = spaces.Dict(
        move=spaces.Box(-1, 1, (2,), np.float32), say=spaces.Text(30), pick=spaces.Discrete(9)
    )

    def __init__(self) -> None:
        self.count = 0
        self.heard: list[Any] = []

    def observation(self) -> dict[str, Any]:
        rng = np.random.default_rng(self.count)
        return {
            "flag": rng.integers(0, 2, 3, dtype=np.int8),
            "image": rng.integers(0, 256, (120, 160, 3), dtype=np.uint8),
            "large": rng.random((300, 301)),
            "odd": rng.integers(0, 256, 5, dtype=np.uint8),
            "small": rng.random(3, dtype=np.float32),
            "text": "é" * (self.count % 7) + "x",
        }

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.count = seed or 0
        return self.observation(), {"seed": seed, "options": options}

    def step(self, action: Any) -> Any:
        self.count += 1
        self.heard.append(action)
        info = {"count": self.count, "words": "y" * self.count} if self.count % 3 else {}
        return self.observation(), self.count / 8, self.count % 5 == 0, False, info

    def close(self) -> None:
        pass


@pytest.mark.parametrize("lane", LANES)
def test_every_way_carries_the_same(serve: Serve, lane: Any) -> None:
    remote, local = Rich(), Rich()
    with RemoteEnv(serve(remote), lane=lane) as env:
        kept: list[tuple[Any, Any]] = []
        for seed in (3, 30):
            got, expected = env.reset(seed=seed, options={"a": [1, 2]}), local.reset(seed=seed)
            kept.append((got[0], expected[0]))
            assert (got[1]["seed"], got[1]["options"]) == (seed, {"a": [1, 2]})
            for index in range(9):
                action = {
                    "move": np.array([index / 9, -1], np.float32),
                    "say": "z" * index,
                    "pick": index,
                }
                given, wanted = env.step(action), local.step(action)
                kept.append((given[0], wanted[0]))
                assert given[1:4] == wanted[1:4]
                info = {name: given[4][name] for name in wanted[4]}
                assert info == wanted[4]
        # At the end, so that one that was overwritten by a later one would show.
        for given, wanted in kept:
            assert given.keys() == wanted.keys()
            assert given["text"] == wanted["text"]
            for name in ("flag", "image", "large", "odd", "small"):
                assert given[name].dtype == wanted[name].dtype
                np.testing.assert_array_equal(given[name], wanted[name])
                assert given[name].flags.writeable
                assert given[name].flags.aligned
    for there, here in zip(remote.heard, local.heard, strict=True):
        assert there["say"] == here["say"]
        assert there["pick"] == here["pick"]
        np.testing.assert_array_equal(there["move"], here["move"])


class Columns(gymnasium.Env[Any, Any]):
    """One of the lanes that are stepped together; its numbers tell it from the others."""

    def __init__(self, lane: int) -> None:
        self.observation_space = spaces.Box(-1e6, 1e6, (40, 41), np.float64)
        self.action_space = spaces.Box(-9, 9, (3,), np.float32)
        self.lane = lane
        self.count = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.count = 0
        return self.observation(), {"lane": self.lane}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.count += 1
        return self.observation(), float(action.sum()), self.count == 3 + self.lane, False, {}

    def observation(self) -> Any:
        return np.full((40, 41), 100.0 * self.lane + self.count)


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize("lane", LANES)
def test_many_lanes_are_carried_side_by_side(serve: Serve, lane: Any, count: int) -> None:
    vector = gymnasium.vector.SyncVectorEnv([partial(Columns, index) for index in range(count)])
    with RemoteVectorEnv(serve(vector), lane=lane) as env:
        first = env.reset(seed=1)[0]
        kept: list[Any] = []
        for step in range(1, 4):
            actions = np.arange(3 * count, dtype=np.float32).reshape(count, 3) / step
            observations, rewards, terminated, _, _ = env.step(actions)
            np.testing.assert_allclose(rewards, actions.sum(axis=1), rtol=1e-6)
            assert terminated.tolist() == [step == 3 + index for index in range(count)]
            kept.append(observations)
        for step, observations in enumerate([first, *kept]):
            assert observations.shape == (count, 40, 41)
            expected = [100.0 * index + step for index in range(count)]
            assert observations[:, 0, 0].tolist() == expected
            assert (observations == observations[:, :1, :1]).all()
            assert observations.flags.writeable


@pytest.mark.parametrize("lane", LANES)
def test_failures_are_the_same_on_every_way(serve: Serve, factory: Any, lane: Any) -> None:
    def fail(env: Any, action: Any) -> object:
        if action == 1:
            raise ZeroDivisionError("the wheel came off")
        answer: Any = (env.observation(), float("nan"), False, False, {})
        return answer if action == 2 else None

    with RemoteEnv(serve(factory(fail)), lane=lane) as env:
        env.reset(seed=5)
        env.step(0)
        with pytest.raises(InvalidActionError):
            env.step(7)
        with pytest.raises(EnvironmentException, match=r"step failed: Zero.*came off") as caught:
            env.step(1)
        error = caught.value
        assert (error.operation, error.seed, error.step) == ("step", 5, 2)
        assert error.remote_type == "ZeroDivisionError"
        assert error.episode_id == env.episode_id
        assert error.remote_traceback is not None
        assert "the wheel came off" in error.remote_traceback
        with pytest.raises(EnvironmentException, match=r"Call reset\(\) first"):
            env.step(0)
        env.reset()
        with pytest.raises(EnvironmentException, match="reward is nan"):
            env.step(2)
        assert env.reset()[0].tolist() == [0, 1]


@pytest.mark.parametrize("lane", LANES)
def test_a_step_that_hangs_is_a_timeout_on_every_way(
    serve: Serve, factory: Any, hang: Any, gate: threading.Event, lane: Any
) -> None:
    server = serve(factory(hang(2)), options=ServeOptions(drain_timeout_seconds=0.1))
    with RemoteEnv(server, lane=lane, request_timeout_seconds=0.3) as env:
        env.reset()
        with pytest.raises(CallTimeout, match=r"step at .* did not answer within 0\.3 s") as caught:
            env.step(2)
        assert (caught.value.layer, caught.value.seconds) == ("request", 0.3)
        env.reset()
        assert env.step(0)[0].tolist() == [1, 1]
    gate.set()


def test_a_step_that_hangs_is_named_where_it_takes_the_last_place(
    serve: Serve, factory: Any, hang: Any, gate: threading.Event, eventually: Any
) -> None:
    limits = ServeOptions(drain_timeout_seconds=0.1, max_sessions=1)
    server: Any = serve(factory(hang(2)), options=limits)
    with RemoteEnv(server, request_timeout_seconds=0.3, queue_timeout_seconds=0.0) as env:
        env.reset()
        with pytest.raises(CallTimeout):
            env.step(2)
        eventually(lambda: server._service.sessions()[0].abandoned)
        with pytest.raises(SessionBusy, match=r"runs that its client gave up on.*isolation"):
            env.reset()
        gate.set()


@pytest.mark.parametrize("lane", LANES)
def test_a_step_that_is_interrupted_leaves_the_next_reset_in_order(
    serve: Serve, factory: Any, gate: threading.Event, eventually: Any, lane: Any
) -> None:
    stepping = threading.Event()

    def wait_at_two(_: Any, action: Any) -> None:
        if action == 2:
            stepping.set()
            gate.wait(30)

    def interrupt() -> None:
        stepping.wait(30)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    server: Any = serve(factory(wait_at_two))
    places = server._service.registry.places
    with RemoteEnv(server, lane=lane) as env:
        env.reset()
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            env.step(2)
        thread.join()
        with pytest.raises(EnvironmentException, match="the last call was interrupted") as caught:
            env.step(0)
        assert caught.value.code == "not_ready"
        gate.set()
        # Nobody comes back for what was interrupted.
        eventually(lambda: places.taken == 0)
        observation, _ = env.reset()
        assert observation.tolist() == [0, 1]
        assert env.step(0)[0].tolist() == [1, 1]


@pytest.mark.parametrize("lane", LANES)
def test_a_client_that_is_closed_by_another_thread_says_so(
    serve: Serve, factory: Any, gate: threading.Event, lane: Any
) -> None:
    stepping = threading.Event()

    def wait(_: Any, action: Any) -> None:
        stepping.set()
        gate.wait(30)

    env: Any = RemoteEnv(serve(factory(wait)), lane=lane)
    env.reset()
    with ThreadPoolExecutor(1) as pool:
        step = pool.submit(env.step, 0)
        stepping.wait(30)
        env.close()
        with pytest.raises(SessionClosed, match="was closed"):
            step.result(5)
    gate.set()


def much(env: Any, action: Any) -> object:
    answer: object = (env.observation(), 1.0, False, False, {"text": "x" * 3000})
    return answer if action == "much" else None


@pytest.mark.parametrize("lane", LANES)
def test_messages_have_the_same_limit_on_every_way(serve: Serve, scripted: Any, lane: Any) -> None:
    inner = scripted()
    inner.observation_space = spaces.Box(0, 255, (1000,), np.uint8)
    inner.observation = lambda: np.zeros(1000, np.uint8)
    inner.action_space = spaces.Text(5000)
    inner.on_step = much
    server = serve(inner, options=ServeOptions(max_message_bytes=2000))
    with RemoteEnv(server, lane=lane) as env:
        env.reset()
        with pytest.raises(ProtocolException, match="too large") as caught:
            env.step("a" * 3000)
        assert caught.value.code == "message_too_large"
        assert inner.steps == 0
        env.reset()
        with pytest.raises(EnvironmentException, match="the limit is 2000"):
            env.step("much")
        env.reset()
        env.step("little")


class Expired:
    def refusal(self, token: str | None) -> str:
        return f"{(token or '')[:4]} has expired"


@pytest.mark.parametrize("lane", ["local", "tcp"])
def test_a_lane_asks_for_the_token_again(
    serve: Serve, scripted: Any, monkeypatch: pytest.MonkeyPatch, lane: Any
) -> None:
    server = serve(scripted(), token="open sesame")
    with RemoteEnv(server, token="open sesame", lane=lane) as env:
        env.reset()
        assert way_of(env) == lane
    host: Any = server
    monkeypatch.setattr(host._host._lanes, "_access", Expired())
    env = RemoteEnv(server, token="open sesame", lane=lane)
    with env, pytest.raises(AccessDenied, match="open has expired"):
        env.reset()


@pytest.mark.parametrize("lane", ["local", "tcp"])
def test_nobody_comes_in_without_the_secret_of_the_handshake(
    serve: Serve, scripted: Any, lane: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(scripted())
    offer = offer_of(server)
    assert offer.secret.reveal() not in repr(offer)
    guessed = LaneOffer(Secret("0" * 64), offer.path, None, offer.port)
    offers(monkeypatch, guessed)
    env = RemoteEnv(server, lane=lane)
    with env, pytest.raises(ServerUnreachable, match="another server answers there"):
        env.reset()
    with RemoteEnv(server) as env:
        env.reset()
        assert way_of(env) == "grpc"


def test_the_socket_is_private_and_gone_with_the_server(
    serve: Serve, scripted: Any, folder: Path
) -> None:
    for address in (None, f"unix://{folder}/env.sock"):
        server = serve(scripted(), address)
        path = Path(offer_of(server).path or "")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert (path.parent.parent == folder) is (address is not None)
        server.shutdown()
        assert not path.parent.exists()
    assert list(folder.iterdir()) == []


def test_what_a_killed_server_left_behind_is_removed_by_the_next(
    serve: Serve, scripted: Any, folder: Path
) -> None:
    living = serve(scripted(), f"unix://{folder}/living.sock")
    offer = offer_of(living)
    new, old = folder / ".rlm-lane-new", folder / ".rlm-lane-old"
    for left in (new, old):
        left.mkdir()
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(left / "lane"))
    for path in (old / "lane", Path(offer.path or "")):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    serve(scripted(), f"unix://{folder}/next.sock")
    assert not old.exists()
    assert new.exists()  # it may be one that is just starting
    with RemoteEnv(living, lane="local") as env:
        env.reset()


def test_a_socket_is_found_beside_the_dialled_one_where_folders_have_other_names(
    serve: Serve, scripted: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = folder / "there"
    there.mkdir()
    server = serve(scripted(), f"unix://{there}/env.sock")
    (folder / "here").symlink_to(there)
    offer = offer_of(server)
    moved = LaneOffer(offer.secret, "/nowhere/lane", offer.beside, None)
    offers(monkeypatch, moved)
    with RemoteEnv(f"unix://{folder}/here/env.sock", lane="local") as env:
        env.reset()


def test_where_no_lane_can_be_reached_grpc_is_used_and_said_once(
    serve: Serve,
    scripted: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = serve(scripted())
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    offer = LaneOffer(Secret("secret"), "/nowhere/lane", None, port)
    offers(monkeypatch, offer)
    with caplog.at_level(logging.WARNING, logger="rlmesh"):
        for _ in range(2):
            with RemoteEnv(server) as env:
                env.reset()
                assert way_of(env) == "grpc"
    told = [record.getMessage() for record in caplog.records if "fast lane" in record.getMessage()]
    assert len(told) == 1
    assert server.address in told[0]
    assert "Connection refused" in told[0]


def test_a_port_that_says_nothing_costs_a_second_once(
    serve: Serve, scripted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(scripted())
    monkeypatch.setattr(frame_dial, "REACH_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        offer = LaneOffer(Secret("secret"), None, None, silent.getsockname()[1])
        offers(monkeypatch, offer)
        for _ in range(3):
            with RemoteEnv(server) as env:
                env.reset()
                assert way_of(env) == "grpc"
        silent.settimeout(0.1)
        silent.accept()[0].close()
        with pytest.raises(TimeoutError):
            silent.accept()


def strangers(offer: LaneOffer) -> Iterator[tuple[socket.socket, FrameEnd]]:
    for address in (offer.path or "", ("127.0.0.1", offer.port or 0)):
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        with socket.socket(family) as connected:
            connected.connect(address)
            end = FrameEnd(connected, limit=1_000_000)
            end.be_patient(10)
            yield connected, end


def opening(offer: LaneOffer, **more: object) -> bytes:
    said: dict[str, object] = {
        "secret": offer.secret.reveal(),
        "headers": {},
        "memory": False,
        **more,
    }
    body = json.dumps(said).encode()
    return HEAD.pack(len(body), OPEN, 0, 0, 0, 0, 0) + body


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n" + bytes(100),
        HEAD.pack(2**32 - 1, OPEN, 0, 0, 0, 0, 0),
        HEAD.pack(2, OPEN, 0, 0, 0, 0, 0) + b"[]",
        HEAD.pack(1, OPEN, 0, 0, 0, 0, 0) + b"\xff",
        HEAD.pack(0, STEP, 0, 0, 0, 0, 0),
    ],
)
def test_nonsense_at_a_lane_is_hung_up_on(serve: Serve, scripted: Any, data: bytes) -> None:
    server = serve(scripted())
    for connected, _ in strangers(offer_of(server)):
        connected.sendall(data)
        with contextlib.suppress(ConnectionResetError):  # as it did not read all of it
            assert connected.recv(100) == b""
    with RemoteEnv(server, lane="local") as env:
        env.reset()


def test_headers_that_make_no_sense_are_refused(serve: Serve, scripted: Any) -> None:
    offer = offer_of(serve(scripted()))
    for connected, end in strangers(offer):
        connected.sendall(opening(offer, headers={"rlmesh-session": "\n"}))
        assert end.receive().kind == WELCOME
        refused = end.receive()
        assert refused.kind == REFUSED
        assert refused.note()["code"] == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    "data",
    [
        HEAD.pack(4, STEP, 1, 0, 0, 2**32 - 1, 0) + b"abcd",
        HEAD.pack(16, STEP, 1, 0, 0, 1, 0) + bytes((9, 0, 0, 0, 0, 0, 0, 0)) + bytes(8),
        HEAD.pack(16, STEP, 1, 200, 0, 1, 0) + bytes((8, 0, 0, 0, 0, 0, 0, 0)) + bytes(8),
        HEAD.pack(3, MESSAGE, 1, 0, 0, 0, 0) + b"\xff\xff\xff",
        HEAD.pack(0, WELCOME, 1, 0, 0, 0, 0),
    ],
)
def test_a_client_that_breaks_the_rules_loses_its_session_and_nobody_else(
    serve: Serve, factory: Any, data: bytes
) -> None:
    server = serve(factory())
    offer = offer_of(server)
    with RemoteEnv(server) as env:
        env.reset()
        for connected, end in strangers(offer):
            connected.sendall(opening(offer))
            assert [end.receive().kind for _ in range(2)] == [WELCOME, ADMITTED]
            connected.sendall(data)
            refused = end.receive()
            assert refused.kind == REFUSED
            assert refused.note()["code"] == "INVALID_ARGUMENT"
            with contextlib.suppress(ConnectionResetError):
                assert connected.recv(100) == b""
        assert env.step(0)[0].tolist() == [1, 1]


def test_those_who_say_nothing_keep_nobody_else_out(serve: Serve, scripted: Any) -> None:
    server = serve(scripted())
    silent: list[socket.socket] = []
    for _ in range(100):
        connected = socket.create_connection(("127.0.0.1", offer_of(server).port or 0))
        silent.append(connected)
    with RemoteEnv(server) as env:
        env.reset()  # by whichever way; they hold the places at the lanes for some seconds
        env.step(0)
    for connected in silent:
        connected.close()


@pytest.mark.parametrize("lane", ["local", "tcp"])
def test_an_answer_to_another_request_ends_the_lane(serve: Serve, scripted: Any, lane: Any) -> None:
    with RemoteEnv(serve(scripted()), lane=lane) as env:
        env.reset()
        env.step(0)
        broken = lane_of(env)
        real = broken._end.send

        def send(parts: Any, size: int) -> None:
            head = bytearray(parts[0])
            head[8] += 1
            real((bytes(head), *parts[1:]), size)

        broken._end.send = send
        with pytest.raises(ProtocolException, match="the reply is to request"):
            env.step(0)
        env.reset()
        env.step(0)


@pytest.mark.parametrize("lane", LANES)
def test_the_server_says_goodbye_on_every_way(serve: Serve, factory: Any, lane: Any) -> None:
    server = serve(factory())
    env = RemoteEnv(server, lane=lane)
    env.reset()
    server.shutdown()
    # gRPC drops what a stream has not read yet when its connection ends before it is looked at.
    told = "the server is shutting down" + ("|the connection was lost" if lane == "grpc" else "")
    with pytest.raises(SessionClosed, match=told) as caught:
        env.step(0)
    assert caught.value.code == "server_gone"
    env.close()


@pytest.mark.parametrize("lane", LANES)
def test_a_shared_environment_is_busy_on_every_way(serve: Serve, scripted: Any, lane: Any) -> None:
    server = serve(scripted())
    with RemoteEnv(server, lane=lane) as first:
        first.reset()
        second = RemoteEnv(server, lane=lane, queue_timeout_seconds=0.0)
        with pytest.raises(SessionBusy, match="another client is stepping"):
            second.reset()
        first.step(0)
    second.reset()
    second.close()


def test_large_observations_go_through_shared_memory_and_are_the_callers_own(
    serve: Serve,
) -> None:
    server = serve(Rich())
    with RemoteEnv(server, lane="local") as env:
        env.reset(seed=1)
        first = env.step({"move": np.zeros(2, np.float32), "say": "", "pick": 0})[0]
        lane = lane_of(env)
        assert lane._memory is not None
        kept = {name: np.copy(value) for name, value in first.items() if name != "text"}
        second = env.step({"move": np.zeros(2, np.float32), "say": "", "pick": 0})[0]
        for name, value in kept.items():
            np.testing.assert_array_equal(first[name], value)
        assert not np.shares_memory(first["large"], second["large"])
        second["large"][:] = 0
        np.testing.assert_array_equal(first["large"], kept["large"])
    np.testing.assert_array_equal(first["large"], kept["large"])


def test_without_shared_memory_large_observations_go_through_the_socket(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("rlmesh.transport.frame_host.SharedMemory.made", refuse)
    with RemoteEnv(serve(Rich()), lane="local") as env:
        observation, _ = env.reset(seed=1)
        assert lane_of(env)._memory is None
        count = 1
        np.testing.assert_array_equal(observation["large"], Rich().reset(seed=1)[0]["large"])
        for _ in range(3):
            action = {"move": np.zeros(2, np.float32), "say": "", "pick": 0}
            count += 1
            given = env.step(action)[0]["large"]
            np.testing.assert_array_equal(given, Rich().reset(seed=count)[0]["large"])


def test_no_descriptor_is_left_open(serve: Serve) -> None:
    server = serve(Rich)

    def play() -> None:
        for lane in LANES:
            options: dict[str, Any] = {"lane": lane}
            with RemoteEnv(server, **options) as env:
                env.reset(seed=1)
                env.step({"move": np.zeros(2, np.float32), "say": "", "pick": 0})

    play()
    play()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        play()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 3


@pytest.mark.slow
def test_hundreds_of_clients_step_side_by_side(serve: Serve, factory: Any) -> None:
    server = serve(factory(), options=ServeOptions(max_sessions=512))
    clients = [RemoteEnv(server) for _ in range(300)]
    for client in clients:
        client.reset()
    for step in range(3):
        for client in clients:
            assert client.step(0)[0].tolist() == [step + 1, 1]
    assert {way_of(client) for client in clients} == {"local"}
    for client in clients:
        client.close()
