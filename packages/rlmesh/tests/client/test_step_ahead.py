"""Actions that are sent before somebody waits for what they do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
import rlmesh
from rlcore import (
    CallTimeout,
    EnvironmentException,
    InvalidActionError,
    ProtocolException,
    SessionClosed,
)
from rlmesh.numpy import RemoteEnv
from rlmesh.server.env_server import EnvServer

Serve = Callable[..., EnvServer]
pytestmark = pytest.mark.usefixtures("each_lane")


def test_sessions_that_are_sent_ahead_play_what_local_environments_play(serve: Serve) -> None:
    server = serve(lambda: gymnasium.make("CartPole-v1"))
    far = [RemoteEnv(server) for _ in range(3)]
    near = [gymnasium.make("CartPole-v1") for _ in range(3)]
    for seed, (one, local) in enumerate(zip(far, near, strict=True)):
        np.testing.assert_array_equal(one.reset(seed=seed)[0], local.reset(seed=seed)[0])
    for step in range(8):
        actions = [np.int64((step + number) % 2) for number in range(3)]
        for one, action in zip(far, actions, strict=True):
            one.begin_step(action)
        for one, local, action in zip(far, near, actions, strict=True):
            ours, theirs = one.step(action), local.step(action)
            np.testing.assert_array_equal(ours[0], theirs[0])
            assert ours[1:4] == theirs[1:4]
    for one in far:
        one.close()


def test_sessions_work_while_the_client_waits_for_another(serve: Serve, factory: Any) -> None:
    together = threading.Barrier(2, timeout=20)

    def meet(env: Any, action: Any) -> None:
        together.wait()

    server = serve(factory(meet))
    with RemoteEnv(server) as first, RemoteEnv(server) as second:
        first.reset()
        second.reset()
        first.begin_step(0)
        second.begin_step(0)  # neither is answered before both are being stepped
        assert [env.step(0)[0].tolist() for env in (first, second)] == [[1, 1], [1, 1]]


def test_plain_steps_and_those_sent_ahead_follow_one_another(serve: Serve, scripted: Any) -> None:
    with rlmesh.RemoteEnv(serve(scripted())) as env:
        env.reset()
        env.step(0)
        env.begin_step(2)
        assert np.asarray(env.step(2)[0]).tolist() == [2, 1]
        observation, reward, terminated, truncated, _ = env.step(1)
        assert (np.asarray(observation).tolist(), reward) == ([3, 1], 1.0)
        assert (terminated, truncated) == (False, False)


def test_what_the_environment_raises_is_raised_by_the_step(serve: Serve, factory: Any) -> None:
    def fail(env: Any, action: Any) -> None:
        if action == 2:
            raise ZeroDivisionError("the wheel came off")

    with RemoteEnv(serve(factory(fail))) as env:
        env.reset(seed=4)
        env.step(1)
        env.begin_step(2)
        with pytest.raises(EnvironmentException, match="the wheel came off") as caught:
            env.step(2)
        assert (caught.value.step, caught.value.seed, caught.value.action) == (2, 4, "2")
        with pytest.raises(EnvironmentException, match="no running episode"):
            env.begin_step(0)
        assert env.reset()[0].tolist() == [0, 1]
        assert env.step(0)[0].tolist() == [1, 1]


def test_one_step_is_under_way_at_a_time_and_it_keeps_its_action(
    serve: Serve, scripted: Any
) -> None:
    inner = scripted()
    with RemoteEnv(serve(inner)) as env:
        env.reset()
        env.begin_step(1)
        with pytest.raises(ProtocolException, match="begin_step while a step is under way"):
            env.begin_step(1)
        with pytest.raises(ProtocolException, match="render while a step is under way"):
            env.render()
        with pytest.raises(ProtocolException, match="another action"):
            env.step(2)
        assert env.step(np.int64(1))[0].tolist() == [1, 1]
        with pytest.raises(InvalidActionError):
            env.begin_step(7)
        assert env.step(0)[0].tolist() == [2, 1]
    assert inner.steps == 2


def test_a_reset_drops_the_step_that_is_under_way(serve: Serve, factory: Any) -> None:
    def fail(env: Any, action: Any) -> None:
        if action == 2:
            raise ZeroDivisionError("nobody hears of it")

    made = factory(fail)
    with RemoteEnv(serve(made)) as env:
        env.reset()
        env.begin_step(0)
        assert env.reset()[0].tolist() == [0, 2]
        env.begin_step(2)
        assert env.reset()[0].tolist() == [0, 1]
        assert env.step(0)[0].tolist() == [1, 1]


def test_a_client_is_closed_without_waiting_for_the_step(
    serve: Serve, factory: Any, hang: Any, gate: threading.Event, eventually: Any
) -> None:
    made = factory(hang())
    server = serve(made)
    env = RemoteEnv(server)
    env.reset()
    env.begin_step(0)
    eventually(lambda: made.made[0].steps == 1)
    started = time.monotonic()
    env.close()
    assert time.monotonic() - started < 2
    with pytest.raises(SessionClosed, match="was closed"):
        env.step(0)
    gate.set()
    eventually(lambda: made.made[0].closed == 1)


def test_the_time_limit_holds_for_the_wait(
    serve: Serve, factory: Any, hang: Any, gate: threading.Event
) -> None:
    server = serve(factory(hang(1)))
    with RemoteEnv(server, request_timeout_seconds=0.3) as env:
        env.reset()
        env.begin_step(0)
        time.sleep(0.5)
        assert env.step(0)[0].tolist() == [1, 1]
        env.begin_step(1)
        with pytest.raises(CallTimeout):
            env.step(1)
        assert env.reset()[0].tolist() == [0, 1]
        gate.set()


def test_a_server_that_has_gone_is_told_by_the_step(serve: Serve, scripted: Any) -> None:
    server = serve(scripted())
    with RemoteEnv(server) as env:
        env.reset()
        server.shutdown()
        env.begin_step(0)
        with pytest.raises(SessionClosed):
            env.step(0)
