"""Retries, criteria, early ends, journals, and what else a run can be told."""

from pathlib import Path
from typing import Any

import pytest
import rlmesh
import rlmesh.numpy
from gymnasium.vector import SyncVectorEnv
from rlmesh import ConfigurationError, EnvServer, EpisodeResult, ModelServer, RunResult
from rlmesh.runs.hooks import RunHooks
from rlmesh.runs.journal import read_journal

RIGHT = rlmesh.numpy.Model(lambda observation: 1)


def outcomes(result: object) -> list[str]:
    assert isinstance(result, RunResult)
    return [episode.outcome.value for episode in result.episodes]


class Flaky:
    """Raises in the first attempts at some seeds."""

    def __init__(self, failures: dict[int, int]) -> None:
        self.failures = failures

    def __call__(self, seed: int | None, step: int) -> None:
        if step == 2 and seed is not None and self.failures.get(seed, 0):
            self.failures[seed] -= 1
            raise OSError("disk")


def test_an_episode_without_a_score_is_tried_again_with_its_seed(corridor: Any) -> None:
    env = corridor(on_step=Flaky({1: 2, 3: 5}))

    result = rlmesh.run(RIGHT, env, episodes=5, retries=2)

    assert outcomes(result) == ["completed", "completed", "completed", "env_error", "completed"]
    assert [e.attempts for e in result.episodes] == [1, 3, 1, 3, 1]
    assert env.seeds == [0, 1, 1, 1, 2, 3, 3, 3, 4]


def test_hooks_are_told_of_every_attempt_and_of_every_error(corridor: Any) -> None:
    class Diary(RunHooks):
        def __init__(self) -> None:
            self.entries: list[str] = []

        def on_episode_start(self, *, episode: int, seed: int) -> None:
            self.entries.append(f"start {episode}")

        def on_error(self, error: BaseException) -> None:
            self.entries.append(type(error).__name__)

        def on_episode_end(self, result: EpisodeResult) -> None:
            self.entries.append(f"end {result.index}")

    one, other = Diary(), Diary()
    rlmesh.run(RIGHT, corridor(on_step=Flaky({1: 1})), episodes=2, retries=1, hooks=[one, other])

    told = ["start 0", "end 0", "start 1", "EnvironmentException", "start 1", "end 1"]
    assert one.entries == other.entries == told


def test_hooks_are_told_what_ends_a_run(corridor: Any) -> None:
    errors: list[BaseException] = []

    class Watch(RunHooks):
        def on_error(self, error: BaseException) -> None:
            errors.append(error)

    def predict(observation: Any) -> int:
        raise LookupError("no plan")

    with pytest.raises(LookupError):
        rlmesh.run(rlmesh.numpy.Model(predict), corridor(), hooks=Watch())

    assert [type(error) for error in errors] == [LookupError]


def test_success_can_be_a_key_of_the_last_info(corridor: Any) -> None:
    env = corridor(info={"goal": True, "success": False})

    assert rlmesh.run(RIGHT, env, success="goal").success_rate == 1.0
    assert rlmesh.run(RIGHT, env, success="elsewhere").success_rate is None


def test_a_task_can_be_a_key_or_a_function(corridor: Any) -> None:
    env = corridor(info={"level": 7})

    by_key = rlmesh.run(RIGHT, env, task="level")
    by_seed = rlmesh.run(RIGHT, env, episodes=3, task=lambda episode: f"odd {episode.index % 2}")

    assert [e.task for e in by_key.episodes] == ["7"]
    assert [e.task for e in by_seed.episodes] == ["odd 0", "odd 1", "odd 0"]


def test_the_number_of_episodes_has_two_names(corridor: Any) -> None:
    assert rlmesh.run(RIGHT, corridor(), max_episodes=2).num_episodes == 2
    assert rlmesh.run(RIGHT, corridor(), episodes=2, max_episodes=2).num_episodes == 2
    with pytest.raises(ConfigurationError, match="episodes is 2 and max_episodes is 3"):
        rlmesh.run(RIGHT, corridor(), episodes=2, max_episodes=3)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retries", -1),
        ("retries", 1.5),
        ("stop_when", 5),
        ("task", 5),
        ("journal", 5),
        ("instruction", 5),
        ("trust_entrypoints", "yes"),
        ("workflow_edition", 5),
        ("trial_index_base", -1),
        ("hooks", [5]),
        ("num_workers", 0),
    ],
)
def test_wrong_arguments_are_named(corridor: Any, name: str, value: Any) -> None:
    wrong: dict[str, Any] = {name: value}
    with pytest.raises(ConfigurationError, match=f"^{name} is "):
        rlmesh.run(RIGHT, corridor(), **wrong)


def test_an_edition_that_nothing_runs_is_refused_without_a_server_too(corridor: Any) -> None:
    with pytest.raises(ConfigurationError, match="workflow edition 'zzz' is not one"):
        rlmesh.run(RIGHT, corridor(), workflow_edition="zzz")


def test_a_rule_that_raises_ends_the_run_as_a_hook_does(corridor: Any) -> None:
    def broken(result: RunResult) -> bool:
        raise KeyError("p")

    with pytest.raises(KeyError) as caught:
        rlmesh.run(RIGHT, corridor(), episodes=3, stop_when=broken)

    assert outcomes(caught.value.__dict__["partial"]) == ["completed"]


def test_an_episode_is_in_the_journal_before_a_rule_is_asked_about_it(
    corridor: Any, tmp_path: Path
) -> None:
    path = tmp_path / "journal.jsonl"

    def enough(result: RunResult) -> bool:
        assert len(read_journal(path)[1]) == result.num_episodes
        raise ArithmeticError("no such rule")

    with pytest.raises(ArithmeticError):
        rlmesh.run(RIGHT, corridor(), episodes=3, stop_when=enough, journal=path)

    assert len(read_journal(path)[1]) == 1


def test_a_run_goes_on_from_its_journal_on_whatever_it_is_played(
    corridor: Any, tmp_path: Path
) -> None:
    journal = tmp_path / "run.jsonl"
    played: list[int | None] = []

    def stop(seed: int | None, step: int) -> None:
        if seed == 3 and step == 2:
            raise KeyboardInterrupt

    with pytest.raises(rlmesh.RunInterrupted):
        rlmesh.run(RIGHT, corridor(on_step=stop), episodes=8, journal=journal)
    with EnvServer(lambda: corridor(on_reset=played.append)) as server:
        result = rlmesh.run(RIGHT, [server.address] * 2, episodes=8, journal=journal)
    again = rlmesh.run(RIGHT, corridor(on_reset=played.append), episodes=8, journal=journal)

    assert result.coverage == again.coverage == (8, 8, 0)
    assert sorted(seed for seed in played if seed is not None) == [3, 4, 5, 6, 7]
    assert rlmesh.run(RIGHT, corridor(), episodes=8).agrees_with(again) == ()


def test_the_journal_of_another_run_is_refused(corridor: Any, tmp_path: Path) -> None:
    journal = tmp_path / "run.jsonl"
    rlmesh.run(RIGHT, corridor(), episodes=2, journal=journal)

    with pytest.raises(rlmesh.JournalError, match="another run"):
        rlmesh.run(RIGHT, corridor(), episodes=2, journal=journal, max_episode_steps=2)


def test_a_result_says_what_shaped_it_and_how_long_things_took(corridor: Any) -> None:
    result = rlmesh.run(RIGHT, corridor(4), episodes=3, max_episode_steps=50)

    rows = {row.op: row for row in result.telemetry}
    assert result.settings["max_episode_steps"] == 50
    assert {op: row.count for op, row in rows.items()} == {
        "env.reset": 3,
        "env.step": 12,
        "model.predict": 12,
        "runner.round": 12,
    }
    assert rows["runner.round"].avg >= rows["env.step"].avg
    assert rows["env.step"].metric == "endpoint.total"
    with EnvServer(corridor) as server:
        remote = rlmesh.run(RIGHT, server.address)
    of_env = {row.metric for row in remote.telemetry if row.component == "env"}
    assert of_env == {"rpc.total", "rpc.wire", "endpoint.total", "endpoint.user"}


class Leaves(RunHooks):
    """Stops a server at the second step of an episode."""

    def __init__(self, episode: int, server: ModelServer) -> None:
        self._episode = episode
        self._server = server
        self.successor: ModelServer | None = None

    def on_step(self, event: rlmesh.StepEvent) -> None:
        if (event.episode, event.step) == (self._episode, 1):
            self._server.shutdown()
            if self.successor is None:
                self.successor = ModelServer(RIGHT, self._server.address)
                self.successor.start()


@pytest.mark.parametrize("lanes", [False, True])
def test_a_served_model_that_comes_back_costs_its_episode_only(corridor: Any, lanes: bool) -> None:
    server = ModelServer(RIGHT)
    server.start()
    hooks = Leaves(2, server)
    env = SyncVectorEnv([corridor]) if lanes else corridor()
    try:
        result = rlmesh.run(rlmesh.RemoteModel(server.address), env, episodes=5, hooks=hooks)
    finally:
        assert hooks.successor is not None
        hooks.successor.shutdown()

    assert outcomes(result) == ["completed", "completed", "infra_error", "completed", "completed"]


def test_a_served_model_that_is_gone_ends_the_run_with_what_was_finished(corridor: Any) -> None:
    class Gone(RunHooks):
        def on_step(self, event: rlmesh.StepEvent) -> None:
            if (event.episode, event.step) == (2, 1):
                server.shutdown()

    with ModelServer(RIGHT) as server, pytest.raises(rlmesh.RunFailed, match="the model was") as it:
        rlmesh.run(rlmesh.RemoteModel(server.address), corridor(), episodes=50, hooks=Gone())

    assert outcomes(it.value.partial)[:3] == ["completed", "completed", "infra_error"]
    assert isinstance(it.value.__cause__, rlmesh.TransportError)
