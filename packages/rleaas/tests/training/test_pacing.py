from typing import Any

import gymnasium
import pytest
from rleaas.training.pacing import PacedEnv, natural_rate


class Time:
    """A clock that sleeping moves, and steps of the environment too."""

    now = 100.0

    def __init__(self) -> None:
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))
        self.now += seconds


class Slow(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose steps take their own time."""

    time: Time
    seconds = 0.0

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.time.now += self.seconds
        return super().step(action)


def paced(rate: float, time: Time, seconds: float = 0.0) -> PacedEnv:
    env = Slow(gymnasium.make("CartPole-v1"))
    env.time, env.seconds = time, seconds
    return PacedEnv(env, rate, clock=time.clock, sleep=time.sleep)


def test_steps_come_at_the_rate() -> None:
    time = Time()
    env = paced(10, time)
    env.reset(seed=1)
    for _ in range(3):
        env.step(0)

    assert time.slept == [0.1, 0.1, 0.1]


def test_the_time_of_a_step_is_part_of_its_share() -> None:
    time = Time()
    env = paced(10, time, seconds=0.04)
    env.reset(seed=1)
    for _ in range(3):
        env.step(0)

    assert time.slept == [0.1, 0.06, 0.06]


def test_an_environment_that_is_slower_than_its_rate_is_never_waited_for() -> None:
    time = Time()
    env = paced(10, time, seconds=0.5)
    env.reset(seed=1)
    for _ in range(3):
        env.step(0)

    assert time.slept == [0.1]


@pytest.mark.parametrize(
    ("metadata", "rate"),
    [
        ({"steps_per_second": 20}, 20.0),
        ({"real_time": True, "render_fps": 30}, 30.0),
        ({"render_fps": 50}, None),
        ({"steps_per_second": 0}, None),
        ({"steps_per_second": "inf"}, None),
        ({"steps_per_second": True}, None),
        (None, None),
    ],
)
def test_only_what_says_so_is_paced(metadata: object, rate: float | None) -> None:
    assert natural_rate(metadata) == rate


class Distant(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that can be sent an action ahead, and notes when."""

    time: Time

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.sent: list[float] = []

    def begin_step(self, action: Any) -> None:
        self.sent.append(round(self.time.now, 6))


def test_an_action_is_sent_ahead_no_sooner_than_its_time_and_its_step_does_not_wait_again() -> None:
    time = Time()
    inner = Distant(gymnasium.make("CartPole-v1"))
    inner.time = time
    env = PacedEnv(inner, 10, clock=time.clock, sleep=time.sleep)
    env.reset(seed=1)
    for _ in range(2):
        env.get_wrapper_attr("begin_step")(0)
        env.step(0)

    assert inner.sent == [100.1, 100.2]
    assert time.slept == [0.1, 0.1]
    assert not paced(10, time).has_wrapper_attr("begin_step")
