"""Several environments of a factory in one session, each with episodes of its own."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from rlcore import (
    CallTimeout,
    ConfigurationError,
    EnvironmentException,
    InvalidActionError,
    ProtocolException,
    SessionBusy,
    SessionClosed,
    UnsupportedError,
)
from rlmesh.numpy import RemoteEnv, RemoteEnvs
from rlmesh.server.options import ServeOptions

Serve = Callable[..., Any]  # servers, looked into
pytestmark = pytest.mark.usefixtures("each_lane")


def test_each_plays_what_a_local_environment_plays_from_its_seed(serve: Serve) -> None:
    server = serve(lambda: gymnasium.make("CartPole-v1"))
    near = [gymnasium.make("CartPole-v1") for _ in range(3)]
    with RemoteEnvs(server, 3) as several:
        pairs = list(zip(several.envs, near, strict=True))
        starts = [
            (far.reset(seed=seed)[0], local.reset(seed=seed)[0])
            for seed, (far, local) in enumerate(pairs)
        ]
        for ours, theirs in starts:
            np.testing.assert_array_equal(ours, theirs)
        assert starts[0][0].tolist() != starts[1][0].tolist()
        ended = 0
        for step in range(60):
            actions = [np.int64(step % (place + 2) != 0) for place in range(3)]
            for (far, _), action in zip(pairs, actions, strict=True):
                far.begin_step(action)
            for place, ((far, local), action) in enumerate(zip(pairs, actions, strict=True)):
                ours, theirs = far.step(action), local.step(action)
                np.testing.assert_array_equal(ours[0], theirs[0])
                assert ours[1:4] == theirs[1:4]
                if ours[2]:
                    ended += 1
                    seed = 100 * step + place
                    np.testing.assert_array_equal(
                        far.reset(seed=seed)[0], local.reset(seed=seed)[0]
                    )
        assert ended > 2
        session = server._service.registry.all()[0]
        assert session.statistics.by_kind["step"].count == 60


def test_they_are_gymnasiums_environments(serve: Serve) -> None:
    server = serve(lambda: gymnasium.make("Pendulum-v1"))
    local = gymnasium.make("Pendulum-v1")
    with RemoteEnvs(server, 2) as several, RemoteEnv(server) as one:
        env = several.envs[1]
        assert isinstance(env, gymnasium.Env)
        assert (env.observation_space, env.action_space) == (
            local.observation_space,
            local.action_space,
        )
        assert (env.metadata, env.render_mode) == (one.metadata, one.render_mode)
        observation, info = env.reset(seed=3, options={"x_init": 0.1})
        np.testing.assert_array_equal(observation, local.reset(seed=3, options={"x_init": 0.1})[0])
        assert info == {}
        assert env.episode_id
        with pytest.raises(TypeError):
            pickle.dumps(env)


def test_some_may_step_while_others_wait_or_have_no_episode(serve: Serve, factory: Any) -> None:
    made = factory()
    with RemoteEnvs(serve(made), 3) as several:
        first, second, third = several.envs
        first.reset()
        third.reset()
        assert [env.step(0)[0].tolist() for env in (first, third)] == [[1, 1], [1, 1]]
        first.begin_step(0)
        # Waiting for it does not wait for the others.
        assert first.step(0)[0].tolist() == [2, 1]
        with pytest.raises(EnvironmentException, match="no running episode"):
            second.step(0)
        assert len(made.made) == 2
        assert second.reset()[0].tolist() == [0, 1]
        assert [env.step(0)[0].tolist() for env in several.envs] == [[3, 1], [1, 1], [2, 1]]


def test_one_message_goes_when_all_that_play_have_begun(
    serve: Serve, factory: Any, eventually: Any
) -> None:
    made = factory()
    with RemoteEnvs(serve(made), 2) as several:
        for env in several.envs:
            env.reset()
        several.envs[0].begin_step(0)
        time.sleep(0.1)
        assert [env.steps for env in made.made] == [0, 0]
        several.envs[1].begin_step(0)
        eventually(lambda: [env.steps for env in made.made] == [1, 1])


def test_one_is_reset_while_the_others_go_on(serve: Serve, factory: Any) -> None:
    with RemoteEnvs(serve(factory()), 3) as several:
        for env in several.envs:
            env.reset()
        for env in several.envs:
            env.begin_step(0)
        # Also where its step is under way, whose outcome is dropped.
        assert several.envs[1].reset()[0].tolist() == [0, 2]
        assert [env.step(0)[0].tolist() for env in several.envs] == [[1, 1], [1, 2], [1, 1]]
        several.envs[0].begin_step(0)
        assert several.envs[0].reset()[0].tolist() == [0, 2]


def test_the_one_that_raises_is_made_anew_and_the_others_keep_their_steps(
    serve: Serve, factory: Any
) -> None:
    def fail(env: Any, action: Any) -> None:
        if action == 2:
            raise ZeroDivisionError("the wheel came off")

    made = factory(fail)
    with RemoteEnvs(serve(made), 3) as several:
        first, second, third = several.envs
        for seed, env in enumerate(several.envs):
            env.reset(seed=seed)
        for env, action in zip(several.envs, (0, 2, 1), strict=True):
            env.begin_step(action)
        assert first.step(0)[0].tolist() == [1, 1]
        with pytest.raises(EnvironmentException, match="the wheel came off") as caught:
            second.step(2)
        told = caught.value
        assert (told.step, told.seed, told.action, told.remote_type) == (
            1,
            1,
            "2",
            "ZeroDivisionError",
        )
        assert "on_step" in (told.remote_traceback or "")
        assert third.step(1)[0].tolist() == [1, 1]
        with pytest.raises(EnvironmentException, match="no running episode"):
            second.begin_step(0)
        assert first.step(0)[0].tolist() == [2, 1]
        assert made.made[1].closed == 1
        assert second.reset()[0].tolist() == [0, 1]
        assert len(made.made) == 4
        assert second.step(0)[0].tolist() == [1, 1]


def test_all_may_raise_at_once(serve: Serve, factory: Any) -> None:
    def fail(env: Any, action: Any) -> None:
        raise ZeroDivisionError("both")

    with RemoteEnvs(serve(factory(fail)), 2) as several:
        for env in several.envs:
            env.reset()
        for env in several.envs:
            env.begin_step(0)
        for env in several.envs:
            with pytest.raises(EnvironmentException, match="both"):
                env.step(0)
            assert env.reset()[0].tolist() == [0, 1]


def test_an_observation_outside_its_space_fails_the_one_that_gave_it(
    serve: Serve, factory: Any
) -> None:
    def odd(env: Any, action: Any) -> Any:
        return (np.zeros(3, np.float32), 1.0, False, False, {}) if action == 2 else None

    with RemoteEnvs(serve(factory(odd)), 2) as several:
        first, second = several.envs
        for env in several.envs:
            env.reset()
        first.begin_step(0)
        second.begin_step(2)
        assert first.step(0)[0].tolist() == [1, 1]
        with pytest.raises(EnvironmentException, match="InvalidObservationError"):
            second.step(2)


def test_a_reset_that_raises_leaves_the_others_alone(serve: Serve, factory: Any) -> None:
    made = factory()
    with RemoteEnvs(serve(made), 2) as several:
        first, second = several.envs
        first.reset()
        first.step(0)

        def broken(**_: object) -> None:
            raise ValueError("no such scenario")

        second.reset()
        made.made[1].reset = broken
        with pytest.raises(EnvironmentException, match="no such scenario"):
            second.reset()
        assert first.step(0)[0].tolist() == [2, 1]
        assert second.reset()[0].tolist() == [0, 1]


def test_infos_ends_and_rewards_are_each_ones_own(serve: Serve, factory: Any) -> None:
    def tell(env: Any, action: Any) -> Any:
        info = {"action": int(action), "array": np.arange(3.0)} if action else {}
        return env.observation(), float(action), action == 2, action == 1, info

    with RemoteEnvs(serve(factory(tell)), 3) as several:
        for env in several.envs:
            env.reset()
        outcomes = [env.step(action) for env, action in zip(several.envs, (0, 1, 2), strict=True)]
        assert [outcome[1:4] for outcome in outcomes] == [
            (0.0, False, False),
            (1.0, False, True),
            (2.0, True, False),
        ]
        infos = [outcome[4] for outcome in outcomes]
        assert infos[0] == {}
        assert [info["action"] for info in infos[1:]] == [1, 2]
        assert infos[1]["array"].tolist() == [0.0, 1.0, 2.0]
        assert infos[2]["completed_episodes"] == 1


def test_an_action_that_is_none_is_refused_before_anything_is_sent(
    serve: Serve, factory: Any
) -> None:
    made = factory()
    with RemoteEnvs(serve(made), 2) as several:
        first, second = several.envs
        first.reset()
        second.reset()
        first.begin_step(0)
        with pytest.raises(InvalidActionError):
            second.begin_step(9)
        with pytest.raises(ProtocolException, match="begin_step while a step is under way"):
            first.begin_step(0)
        with pytest.raises(ProtocolException, match="render while a step is under way"):
            first.render()
        with pytest.raises(ProtocolException, match="another action"):
            first.step(1)
        assert second.step(1)[0].tolist() == [1, 1]
        assert first.step(0)[0].tolist() == [1, 1]


def test_a_strict_server_refuses_one_action_and_steps_the_others(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLMESH_VALIDATION_POLICY", "strict")
    server = serve(lambda: gymnasium.make("Pendulum-v1"))
    fits, exceeds = np.array([1.0], np.float32), np.array([9.0], np.float32)
    with RemoteEnvs(server, 2) as several:
        first, second = several.envs
        for env in several.envs:
            env.reset(seed=1)
        first.begin_step(fits)
        second.begin_step(exceeds)
        with pytest.raises(InvalidActionError):
            second.step(exceeds)
        after = first.step(fits)[0]
        np.testing.assert_array_equal(after, second.step(fits)[0])


def test_each_takes_a_place_and_gives_it_back(serve: Serve, factory: Any, eventually: Any) -> None:
    made = factory()
    server = serve(made, options=ServeOptions(max_sessions=4))
    several = RemoteEnvs(server, 3, queue_timeout_seconds=0)
    several.envs[0].reset()
    told = server.inspect()
    assert (told["places"], told["places_taken"]) == (4, 3)
    sessions: Any = told["sessions"]
    assert [one["environments"] for one in sessions] == [3]
    with RemoteEnv(server, queue_timeout_seconds=0) as last:
        last.reset()
        with RemoteEnv(server, queue_timeout_seconds=0) as late, pytest.raises(SessionBusy):
            late.reset()
    several.close()
    several.close()
    eventually(lambda: server.inspect()["places_taken"] == 0)
    assert sum(env.closed for env in made.made) == 2
    with pytest.raises(SessionClosed, match="was closed"):
        several.envs[0].reset()


def test_more_than_the_server_has_room_for_are_refused_at_once(serve: Serve, factory: Any) -> None:
    server = serve(factory(), options=ServeOptions(max_sessions=4))
    with RemoteEnvs(server, 5) as several, pytest.raises(SessionBusy, match="room for 4"):
        several.envs[0].reset()
    with RemoteEnvs(server, 3) as some, RemoteEnvs(server, 2, queue_timeout_seconds=0) as more:
        some.envs[0].reset()
        with pytest.raises(SessionBusy):
            more.envs[0].reset()
        some.close()
        more.envs[0].reset()


@pytest.mark.parametrize("count", [0, -1, 4097, 2**70, True, 2.0, "3", None])
def test_what_is_no_number_of_environments_is_refused(
    serve: Serve, factory: Any, count: Any
) -> None:
    with pytest.raises(ConfigurationError, match="num_envs"):
        RemoteEnvs(serve(factory()), count)


def test_a_server_of_one_environment_has_not_several(serve: Serve, scripted: Any) -> None:
    with pytest.raises(UnsupportedError, match="one environment"):
        RemoteEnvs(serve(scripted()), 2)
    with pytest.raises(ConfigurationError, match="serves 2 environments at once"):
        RemoteEnvs(serve(lambda: [scripted(), scripted()]), 2)


def test_a_server_that_has_gone_is_told_to_each_and_found_again(serve: Serve, factory: Any) -> None:
    server = serve(factory(), "127.0.0.1:0")
    with RemoteEnvs(server.address, 2) as several:
        for env in several.envs:
            env.reset()
            env.step(0)
        server.shutdown()
        several.envs[0].begin_step(0)
        with pytest.raises(SessionClosed):
            several.envs[0].step(0)
        # The other did not ask, and its episode is over all the same.
        with pytest.raises(SessionClosed, match="was lost"):
            several.envs[1].step(0)
        with pytest.raises(EnvironmentException, match="no running episode"):
            several.envs[1].step(0)
        serve(factory(), server.address.removeprefix("tcp://"))
        assert several.envs[1].reset()[0].tolist() == [0, 1]
        with pytest.raises(EnvironmentException, match="no running episode"):
            several.envs[0].step(0)
        assert several.envs[1].step(0)[0].tolist() == [1, 1]


def test_the_time_limit_ends_the_episodes_of_all(
    serve: Serve, factory: Any, hang: Any, gate: threading.Event
) -> None:
    with RemoteEnvs(serve(factory(hang(1))), 2, request_timeout_seconds=0.3) as several:
        first, second = several.envs
        for env in several.envs:
            env.reset()
        first.begin_step(1)
        second.begin_step(0)
        for env, action in ((first, 1), (second, 0)):
            with pytest.raises(CallTimeout):
                env.step(action)
        gate.set()
        assert [env.reset()[0].tolist() for env in several.envs] == [[0, 1], [0, 1]]


def test_they_are_all_closed_in_the_thread_that_made_them(
    serve: Serve, factory: Any, eventually: Any
) -> None:
    made = factory()
    with RemoteEnvs(serve(made), 3) as several:
        for env in several.envs:
            env.reset()
            env.step(0)
    eventually(lambda: [env.closed for env in made.made] == [1, 1, 1])
    assert len(set[int]().union(*(env.threads for env in made.made))) == 1


def test_an_interrupted_wait_ends_the_session(
    serve: Serve, factory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RemoteEnvs(serve(factory()), 2) as several:
        for env in several.envs:
            env.reset()
        link: Any = getattr(several, "_link")  # noqa: B009 - to be interrupted in it

        def interrupted(ahead: Any) -> Any:
            error = KeyboardInterrupt()
            link._note_interruption(error)
            raise error

        with monkeypatch.context() as patched:
            patched.setattr(link, "receive_ahead", interrupted)
            with pytest.raises(KeyboardInterrupt):
                several.envs[0].step(0)
        with pytest.raises(EnvironmentException, match="was interrupted"):
            several.envs[1].step(0)
        assert [env.reset()[0].tolist() for env in several.envs] == [[0, 1], [0, 1]]


def test_a_loss_that_shows_while_the_next_is_sent_is_a_loss_to_all(
    serve: Serve, factory: Any
) -> None:
    server = serve(factory())
    with RemoteEnvs(server, 3) as several:
        first, second, third = several.envs
        for env in several.envs:
            env.reset()
        for env in several.envs:
            env.begin_step(0)
        assert first.step(0)[0].tolist() == [1, 1]
        server.shutdown()
        first.begin_step(0)
        assert [env.step(0)[0].tolist() for env in (second, third)] == [[1, 1], [1, 1]]
        second.begin_step(0)
        third.begin_step(0)
        for env in several.envs:
            with pytest.raises(SessionClosed):
                env.step(0)


def test_a_server_that_comes_back_without_them_says_so(serve: Serve, factory: Any) -> None:
    server = serve(factory(), "127.0.0.1:0")
    with RemoteEnvs(server.address, 2) as several:
        env = several.envs[0]
        env.reset()
        server.shutdown()
        with pytest.raises(SessionClosed):
            env.step(0)
        serve(factory()(), server.address.removeprefix("tcp://"))
        with pytest.raises(UnsupportedError, match="one environment"):
            env.reset()


def test_several_are_begun_and_stepped_in_one_call_as_one_by_one(
    serve: Serve, factory: Any
) -> None:
    with RemoteEnvs(serve(factory()), 3) as several:
        for env in several.envs:
            env.reset()
        assert several.begin_all([0, 2], [0, 0])
        assert several.begin_all([1], [0])
        told = several.step_all([0, 2]), several.step_all([1])
        assert [[one and one[0].tolist() for one in some] for some in told] == [
            [[1, 1], [1, 1]],
            [[1, 1]],
        ]
        assert [env.step(0)[0].tolist() for env in several.envs] == [[2, 1]] * 3


def test_some_that_go_at_once_work_while_the_others_are_waited_for(
    serve: Serve, factory: Any, eventually: Any
) -> None:
    made = factory()
    with RemoteEnvs(serve(made), 4) as several:
        for env in several.envs:
            env.reset()
        assert several.begin_all([0, 1], [0, 0], at_once=True)
        eventually(lambda: [env.steps for env in made.made] == [1, 1, 0, 0])
        assert several.begin_all([2, 3], [0, 0], at_once=True)
        for _ in range(3):
            for places in ([0, 1], [2, 3]):
                assert None not in several.step_all(places)
                assert several.begin_all(places, [0, 0], at_once=True)
        told = [one for places in ([0, 1], [2, 3]) for one in several.step_all(places)]
        assert [one and one[0].tolist() for one in told] == [[4, 1]] * 4


def test_what_cannot_be_begun_together_is_begun_by_none(serve: Serve, factory: Any) -> None:
    with RemoteEnvs(serve(factory()), 2) as several:
        first, second = several.envs
        assert not several.begin_all([0, 1], [0, 0])
        first.reset()
        assert not several.begin_all([0, 1], [0, 0])
        second.reset()
        assert not several.begin_all([0, 1], [0, 7])
        with pytest.raises(InvalidActionError):
            second.begin_step(7)
        assert several.step_all([0, 1]) == [None, None]
        assert several.begin_all([0, 1], [0, 0])


def test_of_several_stepped_in_one_call_the_one_that_raised_tells_why_when_it_is_asked(
    serve: Serve, factory: Any
) -> None:
    def fail(env: Any, action: Any) -> None:
        if action == 2:
            raise ZeroDivisionError("the wheel came off")

    with RemoteEnvs(serve(factory(fail)), 2) as several:
        for env in several.envs:
            env.reset()
        assert several.begin_all([0, 1], [0, 2])
        first, second = several.step_all([0, 1])
        assert first is not None
        assert first[0].tolist() == [1, 1]
        assert second is None
        with pytest.raises(EnvironmentException, match="the wheel came off"):
            several.envs[1].step(2)


class Straying(gymnasium.Env[Any, Any]):
    """Shows its last action, which may be out of its range; a word where it is asked for one."""

    action_space = gymnasium.spaces.Discrete(9)

    def __init__(self, *, words: bool = False) -> None:
        number = gymnasium.spaces.Box(0.0, 5.0, (1,), np.float32)
        word = gymnasium.spaces.Text(8)
        self.observation_space: Any = (
            gymnasium.spaces.Dict({"number": number, "word": word}) if words else number
        )
        self.words = words

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        return self._shown((options or {}).get("first", 0)), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self._shown(action), 1.0, False, False, {}

    def _shown(self, value: Any) -> Any:
        number = np.array([value], np.float32)
        return {"number": number, "word": "here"} if self.words else number


@pytest.mark.parametrize("words", [False, True])
def test_a_strict_server_refuses_the_observation_of_one_and_the_others_go_on(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, words: bool
) -> None:
    monkeypatch.setenv("RLMESH_VALIDATION_POLICY", "strict")

    def number(observation: Any) -> float:
        return float(observation["number"][0] if words else observation[0])

    server = serve(lambda: Straying(words=words))
    with RemoteEnvs(server, 3) as several:
        first, second, third = several.envs
        for env in several.envs:
            env.reset()
        for env, action in zip(several.envs, (1, 7, 3), strict=True):
            env.begin_step(action)
        assert number(first.step(1)[0]) == 1.0
        with pytest.raises(EnvironmentException, match=r"holds 7\.0 at \[0\], outside") as caught:
            second.step(7)
        assert caught.value.remote_type == "InvalidObservationError"
        assert number(third.step(3)[0]) == 3.0
        session = several.session_id
        assert number(first.step(4)[0]) == 4.0
        with pytest.raises(EnvironmentException, match=r"holds 6\.0"):
            second.reset(options={"first": 6})
        assert number(second.reset()[0]) == 0.0
        assert [number(env.step(2)[0]) for env in several.envs] == [2.0, 2.0, 2.0]
        assert several.session_id == session
