from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from rleaas.training.guarded import GuardedEnv
from rleaas.training.session_state import SessionState, action_from_json, action_to_json


def guarded(env: gymnasium.Env[Any, Any]) -> GuardedEnv:
    return GuardedEnv(env, name="Pole", max_steps=50, seed=3, session=1)


class Unruly(gymnasium.Wrapper[Any, Any, Any, Any]):
    """CartPole that drifts by another amount each time."""

    drift = 0.0

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super().step(action)
        Unruly.drift += 0.001
        return observation + np.float32(Unruly.drift), reward, terminated, truncated, info


def played(env: GuardedEnv, steps: int) -> Any:
    env.reset()
    env.reset()
    return [env.step(step % 2)[0] for step in range(steps)][-1]


def test_an_unfinished_episode_goes_on_where_it_was() -> None:
    before = guarded(gymnasium.make("CartPole-v1"))
    last = played(before, 5)

    after = guarded(gymnasium.make("CartPole-v1"))
    seen, exact = after.restore(SessionState.from_json(before.state().to_json()))

    assert exact
    assert np.array_equal(seen, last)
    assert np.array_equal(after.step(1)[0], before.step(1)[0])
    assert np.array_equal(after.reset()[0], before.reset()[0])


def test_the_return_of_an_episode_that_goes_on_counts_all_its_steps() -> None:
    before = guarded(gymnasium.make("CartPole-v1"))
    played(before, 5)
    after = guarded(gymnasium.make("CartPole-v1"))
    after.restore(before.state())

    info: dict[str, Any] = {}
    while "episode" not in info:
        info = after.step(0)[4]

    assert info["episode"]["r"] == info["episode"]["l"] > 5


def test_an_environment_that_is_not_deterministic_gets_its_next_episode() -> None:
    before = guarded(Unruly(gymnasium.make("CartPole-v1")))
    played(before, 5)
    after = guarded(Unruly(gymnasium.make("CartPole-v1")))

    seen, exact = after.restore(before.state())

    assert not exact
    assert after.state().actions == ()
    assert np.array_equal(seen, before.reset()[0])


@pytest.mark.parametrize(
    "space",
    [
        spaces.Discrete(3, start=2),
        spaces.Box(-1, 1, (2, 2)),
        spaces.Box(-1, 1, ()),
        spaces.MultiDiscrete([2, 3]),
        spaces.MultiBinary(3),
        spaces.Text(9),
        spaces.Dict({"tool": spaces.Discrete(4), "text": spaces.Text(5)}),
    ],
)
def test_an_action_survives_being_written_down(space: gymnasium.Space[Any]) -> None:
    space.seed(1)
    action = space.sample()

    again = action_from_json(space, action_to_json(action))

    assert again in space
    assert action_to_json(again) == action_to_json(action)
