"""Models with a spec: what stands between them and an environment, one for each episode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
import rlmesh
import rlmesh.numpy
from rlcore import ConfigurationError, UnsupportedError
from rlmesh.models.answers import PredictionError
from rlmesh.models.local_policy import ENV_TAGS_KEY
from rlmesh.models.policy import policy_for
from rlmesh.models.served import Served
from rlmesh.specs import EnvContract


class Summed:
    """Gives the model the sum of all that was seen, and the environment twice its action."""

    def __init__(self, scale: float) -> None:
        self.total = 0.0
        self.scale = scale

    def observation(self, observation: Any, /) -> Any:
        self.total += float(observation[0])
        return self.total

    def action(self, action: Any, /) -> Any:
        return np.array([action * self.scale], np.float32)


class Spec:
    def __init__(self) -> None:
        self.asked: list[Any] = []

    def adapter_for(
        self, contract: EnvContract, *, instruction: str | None, trust_entrypoints: bool
    ) -> Callable[[], Summed]:
        self.asked.append((contract.id, instruction, trust_entrypoints))
        return lambda: Summed(2.0)


def at(number: float) -> Any:
    return np.array([number, 0], np.float32)


def test_values_are_adapted_both_ways_for_each_episode_apart(contract: Any) -> None:
    spec = Spec()
    model = rlmesh.numpy.Model(lambda total: total + 1, spec=spec, trust_entrypoints=True)
    policy = policy_for(model, instruction="go")
    policy.bind(contract(metadata={ENV_TAGS_KEY: {}}), num_envs=2)
    first, second = policy.begin("a", 1), policy.begin("b", 2)

    assert policy.predict(at(1), first) == [4]
    assert policy.predict(at(2), first) == [8]
    answer: Any = policy.predict_batch(np.stack([at(0), at(1)]), [first, second])
    assert [action.tolist() for action in answer] == [[8], [4]]
    assert spec.asked == [("Made-v0", "go", True)]
    policy.end(first)
    policy.close()


def test_every_observation_is_adapted_also_while_a_chunk_is_replayed(contract: Any) -> None:
    class Planner(rlmesh.numpy.Model):
        def predict_chunk(self, observation: Any, execution_horizon: int) -> Any:
            return observation + np.arange(execution_horizon)

    policy = policy_for(Planner(spec=Spec()), execution_horizon=2)
    policy.bind(contract(), num_envs=1)
    episode = policy.begin("a", 1)
    actions: list[Any] = [policy.predict(at(number), episode) for number in (1, 1, 1)]

    assert [float(action[0]) for action in actions] == [2, 4, 6]


def test_an_adapted_action_is_held_against_the_space(contract: Any) -> None:
    policy = policy_for(rlmesh.numpy.Model(lambda total: float("nan"), spec=Spec(), name="mine"))
    policy.bind(contract(), num_envs=1)
    with pytest.raises(PredictionError, match="'mine' answered") as caught:
        policy.predict(at(0), policy.begin("a", 1))
    assert caught.value.step == 1


def test_an_environment_without_a_contract_cannot_be_adapted_to() -> None:
    policy = policy_for(rlmesh.numpy.Model(max, spec=Spec()))
    with pytest.raises(ConfigurationError, match="no contract"):
        policy.bind(None, num_envs=1)


def test_a_model_with_a_spec_plays_a_run() -> None:
    class Push:
        def observation(self, observation: Any, /) -> Any:
            return {"angle": float(observation[2])}

        def action(self, action: Any, /) -> Any:
            return int(action > 0)

    class Angled:
        def adapter_for(self, contract: EnvContract, **_: Any) -> Callable[[], Push]:
            return Push

    model = rlmesh.numpy.Model(lambda seen: seen["angle"], spec=Angled())
    plain = rlmesh.numpy.Model(lambda seen: int(seen[2] > 0))
    env = gymnasium.make("CartPole-v1")

    assert rlmesh.run(model, env, seeds=[1, 2]).rewards == (
        rlmesh.run(plain, env, seeds=[1, 2]).rewards
    )


def test_a_served_model_says_that_it_is_not_adapted() -> None:
    with pytest.raises(UnsupportedError, match="NO_ADAPTER"):
        Served(rlmesh.numpy.Model(max, spec=Spec()))


def test_another_sentinel_is_no_spec() -> None:
    wrong: Any = rlmesh.RANDOM_SAMPLE
    with pytest.raises(TypeError, match="RANDOM_SAMPLE"):
        rlmesh.Model(max, spec=wrong)
