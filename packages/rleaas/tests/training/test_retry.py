import socket
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import gymnasium
import pytest
from gymnasium import spaces
from rlcore import (
    Backoff,
    CallTimeout,
    Endpoint,
    EnvironmentException,
    EnvironmentFailed,
    Error,
    IdentityError,
    ServerUnreachable,
    SessionBusy,
    SessionClosed,
)
from rleaas.training.retry import RetryingEnv, RetryPolicy
from rleaas.training.session_parts import SessionParts

GONE = SessionClosed("reset by peer")


class Mortal(gymnasium.Env[Any, Any]):
    """Fails with what its script says, call by call; None is a call that works."""

    def __init__(self, script: list[Exception | None]) -> None:
        self.observation_space = spaces.Discrete(100)
        self.action_space = spaces.Discrete(2)
        self._script = script
        self._count = 0
        self.seeds: list[int | None] = []
        self.closed = False

    def _next(self) -> None:
        error = self._script.pop(0) if self._script else None
        if error is not None:
            raise error

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        self._next()
        self._count = 0
        self.seeds.append(seed)
        return 0, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._next()
        self._count += 1
        return self._count, 1.0, self._count == 3, False, {}

    def close(self) -> None:
        self.closed = True


class Platform:
    """Gives out environments, or fails, in this order."""

    def __init__(self, *answers: Mortal | Exception) -> None:
        self.answers = list(answers)
        self.told: list[str] = []
        self.paused = 0.0

    def open(self) -> gymnasium.Env[Any, Any]:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def pause(self, seconds: float) -> None:
        self.paused += seconds

    def session(self, attempts: int = 4, stop: Callable[[], bool] | None = None) -> RetryingEnv:
        policy = RetryPolicy(attempts=attempts, backoff=Backoff(1.0, 2.0, 60.0, 0.0))
        return RetryingEnv(self.open, policy, stop=stop, tell=self.told.append, pause=self.pause)


def test_an_episode_whose_environment_is_gone_is_aborted_and_the_next_begins_anew() -> None:
    first, second = Mortal([None, None, GONE]), Mortal([])
    platform = Platform(first, ServerUnreachable("refused"), second)
    env = platform.session()
    env.reset(seed=1)
    env.step(0)

    observation, reward, terminated, truncated, info = env.step(0)
    assert (observation, reward, terminated, truncated) == (1, 0.0, False, True)
    assert info["aborted"] is True
    env.reset(seed=2)

    assert (first.closed, second.seeds) == (True, [2])
    # A second before the first look, two before the next.
    assert platform.paused == pytest.approx(3.0)
    assert any("step 2 for the episode with seed 1" in line for line in platform.told)
    assert platform.told[-1] == "found the environment again"


def test_a_reset_that_loses_the_environment_is_asked_again_with_its_seed() -> None:
    second = Mortal([])
    env = Platform(Mortal([None, GONE]), second).session()
    env.reset(seed=1)

    env.reset(seed=2)

    assert second.seeds == [2]


def test_an_environment_that_stays_away_is_given_up_with_the_whole_story() -> None:
    away = [ServerUnreachable(f"refused {number}") for number in range(9)]
    env = Platform(Mortal([None, GONE]), *away).session(attempts=4)
    env.reset(seed=1)
    env.step(0)

    with pytest.raises(EnvironmentException) as caught:
        env.reset(seed=2)

    assert caught.value.code == "environment_gone"
    assert len(str(caught.value).splitlines()) == 1 + 4 + 1  # what, each try, and where to look
    for part in ("reset by peer", "refused 0", "refused 1", "refused 2"):
        assert part in str(caught.value)
    assert isinstance(caught.value.__cause__, ServerUnreachable)


def test_an_environment_that_dies_in_every_episode_is_given_up() -> None:
    platform = Platform(*(Mortal([None, GONE]) for _ in range(9)))
    env = platform.session(attempts=3)

    env.reset(seed=1)
    env.step(0)
    env.reset(seed=2)
    env.step(0)
    env.reset(seed=3)
    with pytest.raises(EnvironmentException, match="not found again"):
        env.step(0)


def test_an_episode_that_ends_wipes_the_slate() -> None:
    platform = Platform(*(Mortal([None, None, None, None, None, GONE]) for _ in range(9)))
    env = platform.session(attempts=2)

    for seed in range(8):
        env.reset(seed=2 * seed)
        for _ in range(3):
            env.step(0)
        env.reset(seed=2 * seed + 1)
        assert env.step(0)[4]["aborted"]


def test_another_contract_is_an_identity_error_and_not_tried_again() -> None:
    platform = Platform(Mortal([None, GONE]), IdentityError("another digest"), Mortal([]))
    env = platform.session()
    env.reset(seed=1)
    env.step(0)

    with pytest.raises(IdentityError):
        env.reset(seed=2)
    assert len(platform.answers) == 1


def test_an_environment_that_failed_for_good_is_given_up_at_once() -> None:
    platform = Platform(Mortal([None, GONE]), EnvironmentFailed("Bank", "crashed 5 times"))
    env = platform.session()
    env.reset(seed=1)
    env.step(0)

    with pytest.raises(EnvironmentException, match="crashed 5 times"):
        env.reset(seed=2)


@pytest.mark.parametrize(
    "error",
    [
        EnvironmentException("it raised", code="environment_failed"),
        CallTimeout("too slow", operation="step", seconds=1.0),
    ],
)
def test_what_the_environment_itself_does_wrong_is_not_tried_again(error: Error) -> None:
    env = Platform(Mortal([None, error])).session()
    env.reset(seed=1)

    with pytest.raises(type(error)):
        env.step(0)


def test_a_full_server_is_for_the_caller_before_the_first_episode_and_waited_for_after() -> None:
    busy = Platform(Mortal([SessionBusy("full")])).session()
    with pytest.raises(SessionBusy):
        busy.reset(seed=1)

    last = Mortal([])
    later = Platform(Mortal([None, GONE]), Mortal([SessionBusy("full")]), last).session()
    later.reset(seed=1)
    later.step(0)
    later.reset(seed=2)
    assert last.seeds == [2]


class Distant(Mortal):
    """An environment that can be sent an action ahead."""

    def __init__(self, script: list[Exception | None], *, ahead: Exception | None = None) -> None:
        super().__init__(script)
        self.sent: list[Any] = []
        self._ahead = ahead

    def begin_step(self, action: Any) -> None:
        if self._ahead is not None:
            raise self._ahead
        self.sent.append(action)


def test_actions_are_sent_ahead_and_one_that_finds_nobody_ends_the_episode() -> None:
    first, lost, third = Distant([]), Distant([], ahead=GONE), Distant([])
    env = Platform(first, lost, third).session()
    env.reset(seed=1)
    env.get_wrapper_attr("begin_step")(1)
    env.close()
    env.reset(seed=2)

    env.get_wrapper_attr("begin_step")(0)

    assert first.sent == [1]
    assert env.step(0)[4]["aborted"] is True
    env.reset(seed=3)
    assert third.seeds == [3]
    assert not Platform(Mortal([])).session().has_wrapper_attr("begin_step")


def test_a_stop_ends_the_wait() -> None:
    env = Platform(Mortal([None, GONE])).session(stop=lambda: True)
    env.reset(seed=1)
    env.step(0)

    with pytest.raises(KeyboardInterrupt):
        env.reset(seed=2)


def test_a_lost_episode_is_neither_judged_nor_counted() -> None:
    from rleaas.training.curriculum import CurriculumSettings
    from rleaas.training.rewards.spec import validate_reward_fn

    given = SessionParts.of(
        max_steps=10,
        reward=validate_reward_fn("info.missing if step > 1 else 1"),
        verifiers={
            "weights": {"v": 1.0},
            "definitions": [{"id": "v", "type": "rule_based", "logic": {"conditions": ["1 == 1"]}}],
        },
        curriculum=CurriculumSettings(window=1),
        scenarios={"scenarios": [{"id": "easy", "tier": 1}, {"id": "hard", "tier": 2}]},
    )
    env = given.wrap(Platform(Mortal([None, None, GONE])).session())
    env.reset(seed=1)
    env.step(0)

    _, reward, _, truncated, info = env.step(0)

    assert (reward, truncated) == (0.0, True)
    assert "verifier_scores" not in info
    assert given.curriculum is not None
    assert given.curriculum.tier == 1


@contextmanager
def served(env_id: str, address: str) -> Generator[subprocess.Popen[str]]:
    """A process that serves an environment, and is killed."""
    command = [sys.executable, "-m", "rlmesh.serve", f"gym://{env_id}", "--address", address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert "serving" in process.stdout.readline()
            yield process
        finally:
            process.kill()


@pytest.mark.slow
def test_a_killed_server_is_found_again_at_its_address_unless_it_serves_something_else() -> None:
    from rlmesh.numpy import RemoteEnv

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    with served("CartPole-v1", address):
        first = RemoteEnv(address)
        endpoint = Endpoint(address, contract_digest=first.env_contract.digest)
        first.close()
        env = RetryingEnv(lambda: RemoteEnv(endpoint, request_timeout_seconds=30))
        env.reset(seed=1)
        env.step(0)
    assert env.step(0)[4]["aborted"] is True
    with served("CartPole-v1", address):
        observation, _ = env.reset(seed=2)
        local, _ = gymnasium.make("CartPole-v1").reset(seed=2)
        assert observation.tolist() == local.tolist()
    env.step(0)
    with served("Acrobot-v1", address), pytest.raises(IdentityError):
        env.reset(seed=3)
    env.close()
