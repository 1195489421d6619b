"""Sessions of a job that come together in one where their environment is quick."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from typing import Any, cast

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from rlcore import Backoff, Endpoint, EnvironmentException
from rleaas.training import shared_sessions
from rleaas.training.assignment import AssignedEnvironment
from rleaas.training.guarded import GuardedEnv, open_sessions
from rleaas.training.lockstep import begin_all, step_all
from rleaas.training.remote_sessions import ComposedSessions, RemoteSessions
from rleaas.training.retry import ABORTED
from rleaas.training.session_parts import SessionParts
from rleaas.training.shared_sessions import SharedSessions
from rlmesh import EnvServer
from rlmesh.numpy import RemoteEnv
from rlmesh.server.options import ServeOptions

SECONDS = 1_000_000_000


class Short(gymnasium.Env[Any, Any]):
    """Episodes of ten steps, which show their seed and the number of the step."""

    observation_space = spaces.Box(-1e9, 1e9, (2,), np.float64)
    action_space = spaces.Discrete(3)
    pause = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        self.seed, self.steps = seed or 0, 0
        return np.array([self.seed % 1000, 0.0]), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if action == 2:
            raise ZeroDivisionError("the wheel came off")
        time.sleep(self.pause)
        self.steps += 1
        return np.array([self.seed % 1000, self.steps]), 1.0, self.steps == 10, False, {}


class Served:
    """Where the environment of the sessions is served now."""

    def __init__(self) -> None:
        self.server: EnvServer | None = None

    def serve(self, made: Any, **options: Any) -> EnvServer:
        self.server = EnvServer(made, options=ServeOptions(**options))
        self.server.start()
        return self.server

    def endpoint(self, *, timeout: float) -> Endpoint:
        assert self.server is not None
        return Endpoint(self.server.address)


@pytest.fixture
def served() -> Iterator[Served]:
    served = Served()
    yield served
    if served.server is not None:
        served.server.shutdown()


@pytest.fixture
def sessions(served: Served) -> SharedSessions:
    return SharedSessions(RemoteSessions(environment=cast("AssignedEnvironment", served)))


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let any environment count as quick, on however busy a machine."""
    monkeypatch.setattr(shared_sessions, "QUICK_NS", SECONDS)


def opened(make: Any, count: int) -> list[GuardedEnv]:
    return open_sessions(make, count, required=False, name="short", max_steps=100, seed=7)


def _local(_session: int) -> Short:
    return Short()


def play(envs: list[GuardedEnv], steps: int) -> list[list[float]]:
    """Play with all of them as trainers do, and return what each saw."""
    seen: list[list[float]] = [[] for _ in envs]
    for _ in range(steps):
        for env in envs:
            env.begin(1)
        for env, sights in zip(envs, seen, strict=True):
            observation, _, terminated, truncated, _ = env.step(1)
            sights += np.asarray(observation).tolist()
            if terminated or truncated:
                sights += np.asarray(env.reset()[0]).tolist()
    return seen


def in_lockstep(envs: list[GuardedEnv], steps: int) -> list[list[float]]:
    """Play as `play` does, with one call for all that step."""
    seen: list[list[float]] = [[] for _ in envs]
    for _ in range(steps):
        begin_all(envs, [1] * len(envs))
        for env, sights, outcome in zip(envs, seen, step_all(envs, [1] * len(envs)), strict=True):
            sights += np.asarray(outcome[0]).tolist()
            if outcome[2] or outcome[3]:
                sights += np.asarray(env.reset()[0]).tolist()
    return seen


def stepped_in(served: Served) -> list[int]:
    """How many environments each session of the server has."""
    assert served.server is not None
    told: Any = served.server.inspect()["sessions"]
    return sorted(one["environments"] for one in told)


@pytest.mark.usefixtures("patient")
def test_they_come_together_after_their_first_episodes_and_see_the_same(
    served: Served, sessions: SharedSessions
) -> None:
    served.serve(Short)
    alone = opened(_local, 5)
    together = opened(sessions, 5)
    for env in [*alone, *together]:
        env.reset()
    assert play(together, 4) == play(alone, 4)
    assert stepped_in(served) == [1] * 5
    assert play(together, 36) == play(alone, 36)
    assert stepped_in(served) == [5]
    for env in together:
        env.close()
        env.close()
    assert stepped_in(served) == []


def test_an_environment_that_takes_its_time_is_stepped_in_sessions_of_their_own(
    served: Served, sessions: SharedSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Short, "pause", 0.001)
    served.serve(Short)
    envs = opened(sessions, 3)
    for env in envs:
        env.reset()
    play(envs, 30)
    assert stepped_in(served) == [1, 1, 1]


@pytest.mark.usefixtures("patient")
def test_environments_that_become_slow_part_again(
    served: Served, sessions: SharedSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.serve(Short)
    envs = opened(sessions, 2)
    for env in envs:
        env.reset()
    play(envs, 20)
    assert stepped_in(served) == [2]
    monkeypatch.setattr(shared_sessions, "QUICK_NS", 1)
    play(envs, 100)
    assert stepped_in(served) == [1, 1]


@pytest.mark.usefixtures("patient")
def test_without_room_for_all_in_one_each_stays_where_it_is(
    served: Served, sessions: SharedSessions
) -> None:
    served.serve(Short, max_sessions=5)
    envs = opened(sessions, 3)
    for env in envs:
        env.reset()
    play(envs, 30)
    assert stepped_in(served) == [1, 1, 1]


@pytest.mark.usefixtures("patient")
def test_they_come_together_once_there_is_room(
    served: Served, sessions: SharedSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_sessions, "ROOM_BACKOFF", Backoff(first=0.001, cap=0.001))
    server = served.serve(Short, max_sessions=6)
    with RemoteEnv(server.address) as other:
        other.reset()
        envs = opened(sessions, 3)
        for env in envs:
            env.reset()
        play(envs, 20)
        assert stepped_in(served) == [1, 1, 1, 1]
    play(envs, 20)
    assert stepped_in(served) == [3]


@pytest.mark.usefixtures("patient")
def test_who_finds_no_room_a_few_times_asks_no_more_and_says_how_much_it_takes(
    served: Served,
    sessions: SharedSessions,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(shared_sessions, "ROOM_BACKOFF", Backoff(first=0.001, cap=0.001))
    caplog.set_level("INFO")
    served.serve(Short, max_sessions=5)
    envs = opened(sessions, 3)
    for env in envs:
        env.reset()
    play(envs, 100)
    assert stepped_in(served) == [1, 1, 1]
    (told,) = [one.message for one in caplog.records if "step apart" in one.message]
    assert "no room for 3 environments in one session, asked for 6 times" in told
    assert "they need 6 places (max_sessions)" in told


@pytest.mark.usefixtures("patient")
def test_one_session_alone_and_another_process_step_alone(
    served: Served, sessions: SharedSessions
) -> None:
    served.serve(Short)
    (only,) = opened(sessions, 1)
    only.reset()
    play([only], 30)
    assert stepped_in(served) == [1]
    assert not getattr(pickle.loads(pickle.dumps(SharedSessions(cast("Any", 3)))), "_crew")  # noqa: B009


@pytest.mark.usefixtures("patient")
def test_a_lost_environment_ends_each_episode_once_and_is_found_together_again(
    served: Served, sessions: SharedSessions
) -> None:
    told: list[str] = []
    composed = ComposedSessions(base=sessions, parts=SessionParts(max_steps=100), tell=told.append)
    first = served.serve(Short)
    envs = opened(composed, 3)
    for env in envs:
        env.reset()
    play(envs, 15)
    assert stepped_in(served) == [3]
    served.serve(Short)
    first.shutdown()
    for env in envs:
        env.begin(1)
    for env in envs:
        _, reward, terminated, truncated, info = env.step(1)
        assert (reward, terminated, truncated, info[ABORTED]) == (0.0, False, True, True)
        env.reset()
    assert told.count("found the environment again") == 3
    play(envs, 25)
    assert stepped_in(served) == [3]


@pytest.mark.usefixtures("patient")
def test_what_one_environment_raises_is_raised_where_it_was_stepped(
    served: Served, sessions: SharedSessions
) -> None:
    served.serve(Short)
    envs = opened(sessions, 2)
    for env in envs:
        env.reset()
    play(envs, 15)
    for env, action in zip(envs, (1, 2), strict=True):
        env.begin(action)
    assert envs[0].step(1)[1] == 1.0
    with pytest.raises(EnvironmentException, match="the wheel came off"):
        envs[1].step(2)


@pytest.mark.usefixtures("patient")
def test_in_lockstep_they_see_what_each_sees_alone_and_know_their_actions(
    served: Served, sessions: SharedSessions
) -> None:
    served.serve(Short)
    composed = ComposedSessions(base=sessions, parts=SessionParts(max_steps=100))
    alone, together = opened(_local, 4), opened(composed, 4)
    for env in [*alone, *together]:
        env.reset()
    assert in_lockstep(together, 43) == in_lockstep(alone, 43)
    assert stepped_in(served) == [4]
    states = [[env.state() for env in envs] for envs in (together, alone)]
    ours, theirs = ([(one.episode, one.seed, one.actions) for one in some] for some in states)
    assert ours == theirs
    assert ours[0][2] == (1, 1, 1)


@pytest.mark.usefixtures("patient")
def test_in_lockstep_a_lost_environment_ends_each_episode_once(
    served: Served, sessions: SharedSessions
) -> None:
    composed = ComposedSessions(base=sessions, parts=SessionParts(max_steps=100))
    first = served.serve(Short)
    envs = opened(composed, 3)
    for env in envs:
        env.reset()
    in_lockstep(envs, 15)
    assert stepped_in(served) == [3]
    served.serve(Short)
    first.shutdown()
    begin_all(envs, [1, 1, 1])
    for env, outcome in zip(envs, step_all(envs, [1, 1, 1]), strict=True):
        assert (outcome[1], outcome[3], outcome[4][ABORTED]) == (0.0, True, True)
        env.reset()
    in_lockstep(envs, 25)
    assert stepped_in(served) == [3]


@pytest.mark.usefixtures("patient")
def test_in_lockstep_what_one_raises_is_raised_after_the_outcomes_before_it(
    served: Served, sessions: SharedSessions
) -> None:
    served.serve(Short)
    composed = ComposedSessions(base=sessions, parts=SessionParts(max_steps=100))
    envs = opened(composed, 2)
    for env in envs:
        env.reset()
    in_lockstep(envs, 15)
    begin_all(envs, [1, 2])
    outcomes = iter(step_all(envs, [1, 2]))
    assert next(outcomes)[1] == 1.0
    with pytest.raises(EnvironmentException, match="the wheel came off"):
        next(outcomes)
