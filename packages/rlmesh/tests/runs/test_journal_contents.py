"""A journal knows the model, the environment and the criteria of its run again."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import rlmesh
import torch
from rlcore import JournalError
from rlmesh.numpy import Model
from rlmesh.runs.results import EpisodeResult

# Any, here: whatever a model or an environment is made of.


class Corridor(gymnasium.Env[Any, Any]):
    def __init__(self, length: int = 3, pay: float = 1.0) -> None:
        self.observation_space = gymnasium.spaces.Box(-9.0, 9.0, (2,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.length, self.pay, self.at = length, pay, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.at = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        self.at += 1
        return np.zeros(2, np.float32), self.pay, self.at >= self.length, False, {}


class Twin(Corridor):
    def step(self, action: Any) -> Any:
        observation, reward, *rest = super().step(action)
        return (observation, -reward, *rest)


class Weighted(Model[Any, Any]):
    def load(self, weight: int = 0) -> None:
        self.weight = weight

    def predict(self, observation: Any) -> Any:
        return self.weight


class Counting:
    """A policy that changes while it is used."""

    def __init__(self) -> None:
        self.calls = 0

    def predict(self, observation: Any) -> int:
        self.calls += 1
        return 0


def always(action: int) -> Callable[[Any], int]:
    return lambda observation: action


def network(bias: float) -> rlmesh.Model[Any, Any]:
    module = torch.nn.Linear(2, 2)
    torch.nn.init.constant_(module.bias, bias)
    torch.nn.init.constant_(module.weight, 1.0)
    return rlmesh.load_model(module)


def longer(than: int) -> Callable[[EpisodeResult], bool]:
    return functools.partial(_is_longer, than)


def _is_longer(than: int, episode: EpisodeResult) -> bool:
    return episode.steps > than


MODELS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "functions": (lambda: Model(lambda o: 0), lambda: Model(lambda o: 1)),
    "closures": (lambda: Model(always(0)), lambda: Model(always(1))),
    "config": (
        lambda: Weighted.from_config(weight=0),
        lambda: Weighted.from_config(weight=1),
    ),
    "weights": (lambda: network(0.0), lambda: network(1.0)),
}


@pytest.mark.parametrize("case", MODELS)
def test_the_results_of_another_model_are_not_taken(tmp_path: Path, case: str) -> None:
    journal = tmp_path / "run.jsonl"
    one, other = MODELS[case]
    rlmesh.run(one(), Corridor, seeds=[0], journal=journal)

    with pytest.raises(JournalError, match=r"contents\.model") as caught:
        rlmesh.run(other(), Corridor, seeds=[0], journal=journal)

    assert caught.value.differences == ("contents.model",)
    assert "digest=" in (caught.value.hint or "")
    assert rlmesh.run(one(), Corridor, seeds=[0], journal=journal).advisories == ()


def test_a_model_with_a_digest_of_its_own_is_known_by_that(tmp_path: Path) -> None:
    journal = tmp_path / "run.jsonl"
    for action in (0, 1):
        model = Model(always(action), digest="v1")
        result = rlmesh.run(model, Corridor, seeds=[0], journal=journal)

    assert result.advisories == ()
    with pytest.raises(JournalError, match="model_digest"):
        rlmesh.run(Model(always(0), digest="v2"), Corridor, seeds=[0], journal=journal)


def test_a_model_that_its_own_run_changed_goes_on(tmp_path: Path) -> None:
    journal, policy = tmp_path / "run.jsonl", Counting()

    def interrupted(episode: EpisodeResult) -> None:
        if episode.index == 1:
            raise KeyboardInterrupt

    with pytest.raises(rlmesh.RunInterrupted):
        rlmesh.run(
            Model(policy), Corridor, seeds=[0, 1, 2], journal=journal, on_episode=interrupted
        )
    assert policy.calls

    result = rlmesh.run(Model(policy), Corridor, seeds=[0, 1, 2], journal=journal)
    assert result.coverage.scored == 3

    policy.calls += 1  # by other means
    with pytest.raises(JournalError, match=r"contents\.model"):
        rlmesh.run(Model(policy), Corridor, seeds=[0, 1, 2], journal=journal)


@pytest.mark.parametrize("workers", [None, 1])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Corridor, Twin),
        (functools.partial(Corridor, 3), functools.partial(Corridor, 5)),
    ],
    ids=["classes", "arguments"],
)
def test_the_results_of_another_environment_are_not_taken(
    tmp_path: Path, one: Any, other: Any, workers: int | None
) -> None:
    journal, model = tmp_path / "run.jsonl", Model(always(0))
    rlmesh.run(model, one, seeds=[0], journal=journal)

    with pytest.raises(JournalError, match=r"contents\.environment\.made_by"):
        rlmesh.run(model, other, seeds=[0], journal=journal, num_workers=workers)

    again = rlmesh.run(model, one, seeds=[0], journal=journal, num_workers=workers)
    assert again.advisories == ()


def test_of_an_environment_that_is_given_the_class_is_compared_and_the_rest_is_told(
    tmp_path: Path,
) -> None:
    journal, model = tmp_path / "run.jsonl", Model(always(0))
    result = rlmesh.run(model, Corridor(3), seeds=[0], journal=journal)
    assert result.environment is not None
    assert result.environment.name == "Corridor"

    again = rlmesh.run(model, Corridor(5), seeds=[0], journal=journal)
    (told,) = again.advisories
    assert "what Corridor was made with" in told
    with pytest.raises(JournalError, match=r"contents\.environment\.class"):
        rlmesh.run(model, Twin(), seeds=[0], journal=journal)


def test_an_environment_of_gymnasium_is_known_by_its_arguments(tmp_path: Path) -> None:
    journal, model = tmp_path / "run.jsonl", Model(always(0))
    room: Any = gymnasium
    room.register("rlmesh-test/Corridor-v0", entry_point=Corridor)
    try:
        for length in (3, 3):
            env = gymnasium.make("rlmesh-test/Corridor-v0", length=length)
            result = rlmesh.run(model, env, seeds=[0], journal=journal)
            assert result.advisories == ()
        env = gymnasium.make("rlmesh-test/Corridor-v0", length=5)
        with pytest.raises(JournalError, match=r"contents\.environment\.class"):
            rlmesh.run(model, env, seeds=[0], journal=journal)
    finally:
        del gymnasium.registry["rlmesh-test/Corridor-v0"]


def test_another_criterion_of_the_same_name_is_another_run(tmp_path: Path) -> None:
    journal, model = tmp_path / "run.jsonl", Model(always(0))
    first = rlmesh.run(model, Corridor, seeds=[0], journal=journal, success=longer(1))
    assert first.episodes[0].success is True

    with pytest.raises(JournalError, match=r"contents\.success"):
        rlmesh.run(model, Corridor, seeds=[0], journal=journal, success=longer(9))
    again = rlmesh.run(model, Corridor, seeds=[0], journal=journal, success=longer(1))
    assert again.advisories == ()


def test_another_model_that_is_served_under_the_name_is_another_one(tmp_path: Path) -> None:
    journal = tmp_path / "run.jsonl"
    for action in (0, 0, 1):
        served = Model(always(action), name="policy")
        served.start("tcp://127.0.0.1:0")
        try:
            with rlmesh.RemoteModel(served.address) as model:
                if action == 0:
                    result = rlmesh.run(model, Corridor, seeds=[0], journal=journal)
                    assert result.advisories == ()
                    continue
                with pytest.raises(JournalError, match=r"contents\.model"):
                    rlmesh.run(model, Corridor, seeds=[0], journal=journal)
        finally:
            served.shutdown()


def test_settings_without_an_end_can_be_written(tmp_path: Path) -> None:
    options: Any = {"max_episode_seconds": float("inf"), "success_threshold": float("-inf")}
    journal = tmp_path / "run.jsonl"
    rlmesh.run(Model(always(0)), Corridor, seeds=[0], journal=journal, **options)
    result = rlmesh.run(Model(always(0)), Corridor, seeds=[0], journal=journal, **options)
    assert result.settings["success_threshold"] == "-inf"
    assert "max_episode_seconds" not in result.settings
    assert rlmesh.RunResult.from_json(result.to_json()).settings == result.settings
