"""Spaces are to a client what they are to the environment."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.spaces.utils import flatten
from rlmesh.numpy import RemoteEnv, RemoteVectorEnv
from rlmesh.spaces import Dict, Text
from rlmesh.spaces.convert import space_to_proto
from rlmesh.spaces.gymnasium_spaces import from_gymnasium_space

Serve = Callable[..., Any]
SPACE = spaces.Dict(
    [("z", spaces.Box(0, 1, (2,))), ("a", spaces.Discrete(3)), ("inner", spaces.Text(4))]
)


class Still(gymnasium.Env[Any, Any]):
    observation_space = action_space = SPACE

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        return self._seen(), 0.0, False, False, {}

    def _seen(self) -> Any:
        return {"a": 1, "inner": "x", "z": np.array([0.25, 0.5], np.float32)}


def test_dictionaries_keep_the_order_of_gymnasium_and_texts_their_charset(
    serve: Serve, each_lane: str
) -> None:
    with RemoteEnv(serve(Still).address) as env:
        space: Any = env.observation_space
        assert space == SPACE
        assert list(space.spaces) == ["z", "a", "inner"]
        seen, _ = env.reset()
        assert list(seen) == ["z", "a", "inner"]
        np.testing.assert_array_equal(
            flatten(env.observation_space, seen), flatten(SPACE, Still().reset()[0])
        )
        assert not env.observation_space.contains({**seen, "inner": "a b"})
        env.step(env.action_space.sample())


GIVEN: list[tuple[Any, list[str]]] = [
    ({"b": 1, "a": 1}, ["a", "b"]),
    (OrderedDict({"b": 1, "a": 1}), ["b", "a"]),
    ([("b", 1), ("a", 1)], ["b", "a"]),
]


@pytest.mark.parametrize(("given", "order"), GIVEN)
def test_keys_are_in_the_order_that_gymnasium_gives_them(given: Any, order: list[str]) -> None:
    pairs = given.items() if hasattr(given, "items") else given
    theirs = spaces.Dict(type(given)([(key, spaces.Discrete(2)) for key, _ in pairs]))
    ours = from_gymnasium_space(theirs)
    assert isinstance(ours, Dict)
    assert list(ours.spaces) == order == list(theirs.spaces)
    assert space_to_proto(ours).dict.keys == order


def test_gymnasiums_default_charset_is_any_character_to_published_peers() -> None:
    written = space_to_proto(from_gymnasium_space(spaces.Text(5))).text
    assert written.charset == ""
    assert frozenset(written.declared_charset) == spaces.Text(5).character_set


def test_an_environment_with_a_text_space_of_its_own_is_served(serve: Serve) -> None:
    def make() -> Any:
        return gymnasium.make("minigrid:MiniGrid-Empty-5x5-v0")

    here = make()
    with RemoteEnv(serve(make).address) as env:
        seen, _ = env.reset(seed=3)
        expected, _ = here.reset(seed=3)
        np.testing.assert_equal(dict(seen), expected)
        assert env.observation_space.contains(seen)
        np.testing.assert_equal(env.step(2)[:4], here.step(2)[:4])
    with RemoteVectorEnv(serve([make(), make()]).address) as lanes:
        seen, _ = lanes.reset(seed=3)
        assert seen["mission"] == (expected["mission"],) * 2
    assert from_gymnasium_space(here.observation_space["mission"]) == Text(1024)
