import pytest
from rlmesh.cli.drawing import drawing_arguments
from rlmesh.server.sources import load_factory


@pytest.mark.parametrize("source", ["CartPole-v1", "gym://CartPole-v1", "MinigridWorld", "x:Y"])
def test_only_what_can_draw_is_made_to_draw(source: str) -> None:
    can = "CartPole" in source
    assert drawing_arguments(source) == ({"render_mode": "rgb_array"} if can else {})


@pytest.mark.parametrize("source", ["tests.nowhere:Env", "NoSuchEnv-v0", "FrozenLake-v1"])
def test_nothing_is_raised_for_what_is_told_later(source: str) -> None:
    assert drawing_arguments(source) in ({}, {"render_mode": "rgb_array"})


def test_an_environment_is_made_to_draw() -> None:
    env = load_factory("CartPole-v1", drawing_arguments("CartPole-v1"))()
    assert getattr(env, "render_mode", None) == "rgb_array"
