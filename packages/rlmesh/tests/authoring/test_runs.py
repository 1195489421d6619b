"""Factories that runs and sessions are given."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rlmesh
from rlcore import EnvironmentException
from rlmesh.numpy import Model

Log = Callable[[], list[str]]
ZERO = Model(lambda observation: 0)


@pytest.mark.parametrize("given", ["class", "instance", "bound", "name"])
def test_a_run_prepares_makes_and_closes(authored: Any, author_log: Log, given: str) -> None:
    env: object = {
        "class": authored.Lines,
        "instance": authored.Lines(),
        "bound": authored.Lines().with_params(size=3),
        "name": "authored:Lines",
    }[given]

    result = rlmesh.run(ZERO, env, seeds=[1, 2])

    assert [episode.steps for episode in result.episodes] == [2, 2]
    assert author_log() == ["prepared", "made 3", "closed", "factory closed"]


def test_a_session_does_so_too(authored: Any, author_log: Log) -> None:
    with rlmesh.session(ZERO, authored.Lines) as session:
        session.reset(seed=1)

    assert author_log() == ["prepared", "made 3", "closed", "factory closed"]


def test_an_environment_is_the_same_one_in_a_run_and_at_a_server(authored: Any) -> None:
    here = rlmesh.run(ZERO, authored.Lines, seeds=[1])
    with rlmesh.EnvServer(authored.Lines) as server:
        there = rlmesh.run(ZERO, server, seeds=[1])

    assert here.environment is not None
    assert there.environment is not None
    assert here.environment.contract_digest == there.environment.contract_digest


def test_the_trial_is_told_to_an_environment_that_wants_it(authored: Any) -> None:
    class Wanting(Model[Any, int]):
        def predict(self, observation: Any) -> int:
            return 0

    told: list[object] = []
    made = authored.Lines().make(length=1)
    inner = made.reset

    def reset(**keywords: Any) -> Any:
        told.append(keywords.get("options"))
        return inner(**keywords)

    made.reset = reset
    rlmesh.run(Wanting(), made, episodes=2, trial_index_base=5)

    assert told == [{"trial_index": 5}, {"trial_index": 6}]


def test_a_factory_that_cannot_make_is_closed_when_the_run_fails(
    authored: Any, author_log: Log
) -> None:
    def make(self: object, size: int = 3, mode: str = "plain") -> Any:
        raise ValueError("no level")

    failing = type("Failing", (authored.Lines,), {"make": make})
    with pytest.raises(EnvironmentException, match="no level"):
        rlmesh.run(ZERO, failing, episodes=1)

    assert author_log() == ["prepared", "factory closed"]


def test_workers_prepare_in_their_processes(
    authored: Any, author_log: Log, author_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(author_folder))

    result = rlmesh.run(ZERO, authored.Lines, episodes=4, num_workers=2)

    log = author_log()
    assert len(result.episodes) == 4
    # One process may have played all four before the other one was there.
    assert 1 <= log.count("prepared") == log.count("factory closed") <= 2
    assert f"{os.getpid()} prepared" not in (author_folder / "author.log").read_text()


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_a_run_in_this_process_gives_actions_in_the_framework_of_the_factory(name: str) -> None:
    import gymnasium
    from gymnasium import spaces

    library: Any = pytest.importorskip(name)
    arrays: Any = library.Tensor if name == "torch" else library.Array
    seen: list[bool] = []

    class Env(gymnasium.Env[Any, Any]):
        observation_space = spaces.Box(-1, 1, (2,), np.float32)
        action_space = spaces.Box(-1, 1, (2,), np.float32)

        def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
            return np.zeros(2, np.float32), {}

        def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
            seen.append(isinstance(action, arrays))
            return action, action.sum(), True, False, {}

    def make(self: object) -> Env:
        return Env()

    factory: Any = type("Theirs", (getattr(rlmesh, name).EnvFactory,), {"make": make})
    result = rlmesh.run(Model(lambda _: np.array([0.25, 0.5], np.float32)), factory, episodes=1)

    assert seen == [True]
    assert result.episodes[0].reward == 0.75
