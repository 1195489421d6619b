"""The names for annotations fit what they name."""

from __future__ import annotations

import gymnasium
import pytest
import rlmesh
from rlmesh import types


@pytest.mark.parametrize("name", types.__all__)
def test_every_listed_name_is_there_and_says_what_it_is(name: str) -> None:
    assert hasattr(types, name)


def test_the_published_names_are_there() -> None:
    published = [
        "PrimitiveValue",
        "Value",
        "Metadata",
        "InfoDict",
        "PredictContext",
        "BatchPredictContext",
        "SpaceLike",
        "EnvLike",
        "VectorEnvLike",
        "HasAddress",
        "HasEnvContract",
        "SupportsResetStep",
        "SupportsMake",
        "LocalEnvTarget",
        "EnvTarget",
        "SpecArg",
        "ViewArg",
    ]

    assert set(types.__all__) >= set(published)


def test_environments_have_the_shape_that_the_names_describe() -> None:
    # Checkers compare the signatures; nothing here is run but the assignments.
    env: types.EnvLike = gymnasium.make("CartPole-v1")
    vector: types.VectorEnvLike = gymnasium.make_vec("CartPole-v1", num_envs=2)
    space: types.SpaceLike = env.action_space
    contexts: types.BatchPredictContext = []
    watched: types.ViewArg = "http"
    with rlmesh.EnvServer(env) as server:
        dialled: types.HasAddress = server
        assert dialled.address
    assert vector.num_envs == 2
    assert space.contains(space.sample())
    assert (contexts, watched) == ([], "http")
    vector.close()
