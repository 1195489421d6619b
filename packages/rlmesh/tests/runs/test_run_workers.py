"""Runs on several environments at once: lists of them, and processes."""

import os
import subprocess
import sys
import tempfile
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import rlmesh
import rlmesh.numpy
from rlmesh import EnvServer, RunFailed, RunResult
from rlmesh.runs.hooks import RunHooks
from rlmesh.runs.worker_folder import WorkerFolder

HERE = Path(__file__).parent
WALK = "worker_envs:Walk"
RIGHT = rlmesh.numpy.Model(lambda observation: 1)


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    # The processes get this one's path.
    monkeypatch.setattr(sys, "path", [str(HERE), *sys.path])


def walk() -> Any:
    return import_module("worker_envs").Walk()  # beside this file, which is put on the path


def outcomes(result: object) -> list[str]:
    assert isinstance(result, RunResult)
    return [episode.outcome.value for episode in result.episodes]


def test_any_number_of_environments_gives_the_same_result() -> None:
    seeds = [7, 3, 3001, 9, 4, 1, 8, 2, 6, 5]
    one = rlmesh.run(RIGHT, walk(), seeds=seeds)

    others = {
        "several": rlmesh.run(RIGHT, [walk(), walk(), walk()], seeds=seeds),
        "processes": rlmesh.run(RIGHT, WALK, seeds=seeds, num_workers=2),
    }
    with EnvServer(walk) as server:
        others["dialled"] = rlmesh.run(RIGHT, server.address, seeds=seeds, num_workers=3)
        others["mixed"] = rlmesh.run(RIGHT, [server.address, walk()], seeds=seeds)

    for name, result in others.items():
        assert one.agrees_with(result) == (), name
        assert result.rewards == one.rewards, name
    assert outcomes(one).count("env_error") == 1


def test_the_workers_are_processes_and_are_gone_afterwards() -> None:
    processes: set[int] = set()
    before = children()

    def note(observation: Any) -> int:
        processes.add(int(observation[1]))
        return 1

    rlmesh.run(rlmesh.numpy.Model(note), WALK, episodes=8, num_workers=2)

    assert os.getpid() % 2**16 not in processes
    assert 1 <= len(processes) <= 2
    assert children() <= before


def children() -> set[str]:
    """The numbers of the processes that this one has started and that still run."""
    found = subprocess.run(
        ["ps", "-o", "pid=,stat=,args=", "--ppid", str(os.getpid())],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.splitlines()
    return {line.split()[0] for line in found if "rlmesh" in line and " Z" not in line}


def test_a_worker_that_is_killed_costs_its_episode_and_the_next_gets_another() -> None:
    seeds = [*range(36), 1036, *range(37, 45)]

    result = rlmesh.run(RIGHT, WALK, seeds=seeds, num_workers=2)

    assert len(result.episodes) == 45
    assert [e.index for e in result.episodes if not e.outcome.scored] == [36]
    assert result.episodes[36].outcome.value in ("env_error", "infra_error")
    assert "SIGKILL" in (result.episodes[36].error or "")


def test_a_worker_that_hangs_is_a_timeout_and_the_run_goes_on() -> None:
    seeds = [1, 2, 2003, 4, 5]

    result = rlmesh.run(RIGHT, WALK, seeds=seeds, num_workers=2, step_timeout_seconds=4)

    assert outcomes(result) == ["completed", "completed", "timeout", "completed", "completed"]


def test_a_worker_that_hangs_in_the_last_episode_leaves_the_result() -> None:
    result = rlmesh.run(RIGHT, WALK, seeds=[1, 2003], num_workers=2, step_timeout_seconds=4)

    assert outcomes(result) == ["completed", "timeout"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["RaisesAtClose", "Unclosed"])
def test_workers_that_do_not_close_are_told_as_one_environment_is(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RunFailed, match="every episode was played, but closing failed") as caught:
        rlmesh.run(RIGHT, f"worker_envs:{name}", episodes=2, num_workers=2, progress=False)

    assert outcomes(caught.value.partial) == ["completed"] * 2
    assert ("still in use" if name == "RaisesAtClose" else "SIGKILL") in str(caught.value)
    assert "Traceback" not in capfd.readouterr().err


def test_folders_of_runs_that_were_killed_are_swept_and_those_of_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = (
        "import tempfile; from rlmesh.runs.worker_folder import WorkerFolder\n"
        f"tempfile.tempdir = {str(tmp_path)!r}\n"
        "folder = WorkerFolder(); print(folder.path, flush=True); input()"
    )
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as child:
        left = Path(child.stdout.readline().strip())  # type: ignore[union-attr]  # it is a pipe
        foreign = tmp_path / "rlmesh-run-other"
        foreign.mkdir()
        living = WorkerFolder()
        assert left.is_dir()
        child.kill()
        child.wait()

    last = WorkerFolder()

    assert {living.path, last.path, foreign} == set(tmp_path.iterdir())
    living.remove()
    last.remove()
    assert list(tmp_path.iterdir()) == [foreign]


def test_failures_stop_a_run_at_the_same_episode_however_many_play() -> None:
    seeds = [1, 3001, 2, 3002, 3, 3003, 4, 5]

    for env in (walk(), [walk(), walk(), walk()]):
        with pytest.raises(rlmesh.RunFailed, match="2 episodes failed") as caught:
            rlmesh.run(RIGHT, env, seeds=seeds, max_failures=1)
        partial = caught.value.partial
        assert outcomes(partial) == ["completed", "env_error", "completed", "env_error"]


def test_a_rule_stops_a_run_at_the_same_episode_however_many_play() -> None:
    def enough(result: RunResult) -> bool:
        return result.num_episodes >= 4

    for env in (walk(), [walk(), walk(), walk()]):
        result = rlmesh.run(RIGHT, env, episodes=20, stop_when=enough)
        assert result.seeds == (0, 1, 2, 3)
        assert result.stopped == "stop_when said that this is enough"
        assert result.coverage == (20, 4, 0)


def test_a_model_that_raises_ends_all_players() -> None:
    def predict(observation: Any, context: Any) -> int:
        if context["episode_seed"] == 5:
            raise LookupError("no plan")
        return 1

    with pytest.raises(LookupError) as caught:
        rlmesh.run(rlmesh.numpy.Model(predict), [walk(), walk()], episodes=50)

    partial = caught.value.__dict__["partial"]
    assert isinstance(partial, RunResult)
    assert 5 <= partial.num_episodes <= 8
    assert partial.coverage.failed == outcomes(partial).count("cancelled")


def test_hooks_are_called_one_at_a_time() -> None:
    inside = threading.Lock()

    class Alone(RunHooks):
        calls = 0

        def on_step(self, event: rlmesh.StepEvent) -> None:
            assert inside.acquire(blocking=False)
            Alone.calls += 1
            inside.release()

    rlmesh.run(RIGHT, [walk(), walk(), walk()], episodes=20, hooks=[Alone(), Alone()])

    assert Alone.calls == 200


def test_an_endpoint_that_is_lost_leaves_its_episodes_to_the_others(corridor: Any) -> None:
    lost = threading.Event()

    class Stop(RunHooks):
        def on_step(self, event: rlmesh.StepEvent) -> None:
            if event.lane == 1 and event.step == 1:
                server.shutdown()
                lost.set()

    def wait(seed: int | None, step: int) -> None:
        lost.wait(20)  # the other one plays on only when its companion is gone

    patient = corridor(5, on_step=wait)
    with EnvServer(lambda: corridor(5)) as server:
        result = rlmesh.run(RIGHT, [patient, server.address], episodes=9, retries=1, hooks=Stop())

    assert result.coverage == (9, 9, 0)
    assert [e.attempts for e in result.episodes].count(2) == 1


@pytest.mark.parametrize(
    ("env", "arguments", "message"),
    [
        ([], {}, "the list of environments is empty"),
        (WALK, {"num_workers": 0}, "num_workers is 0"),
        (lambda: 1, {"num_workers": 1.5}, "num_workers is 1.5"),
    ],
)
def test_workers_that_cannot_be_are_refused(
    env: Any, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(rlmesh.ConfigurationError, match=message):
        rlmesh.run(RIGHT, env, **arguments)


def test_one_environment_cannot_have_several_workers() -> None:
    with pytest.raises(rlmesh.ConfigurationError, match="is one environment"):
        rlmesh.run(RIGHT, walk(), num_workers=2)
    env = walk()
    with pytest.raises(rlmesh.ConfigurationError, match="the same environment in several places"):
        rlmesh.run(RIGHT, [env, env])
    with (
        EnvServer(walk()) as server,
        pytest.raises(rlmesh.ConfigurationError, match="one environment for all its clients"),
    ):
        rlmesh.run(RIGHT, server.address, num_workers=2)


def test_environments_that_differ_are_not_mixed() -> None:
    import gymnasium as gym

    with pytest.raises(rlmesh.ConfigurationError, match="environment 1 of the list is CartPole"):
        rlmesh.run(RIGHT, [walk(), gym.make("CartPole-v1")])


def test_environments_of_two_classes_are_not_mixed_though_their_spaces_are_alike() -> None:
    other = import_module("worker_envs").SlowWalk()

    with pytest.raises(
        rlmesh.ConfigurationError, match=r"1 of the list is a worker_envs\.SlowWalk"
    ):
        rlmesh.run(RIGHT, [walk(), other])


SCRIPT = """
import rlmesh
print(rlmesh.run(rlmesh.RANDOM_SAMPLE, "CartPole-v1", episodes=4, num_workers=2).coverage)
"""


@pytest.mark.slow
def test_a_script_without_a_guard_can_have_workers(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)

    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=50, check=False
    )

    assert (done.returncode, done.stdout.strip()) == (0, "4 of 4 scored, 0 failed"), done.stderr


def test_a_factory_is_prepared_once_and_closed_at_the_end(corridor: Any) -> None:
    told: list[str] = []

    class Factory(rlmesh.EnvFactory):
        def prepare(self) -> None:
            told.append("prepare")

        def make(self, **params: object) -> Any:
            told.append("make")
            return corridor(2, on_close=lambda: told.append("close env"))

        def close(self) -> None:
            told.append("close")

    rlmesh.run(RIGHT, Factory(), episodes=3)

    assert told == ["prepare", "make", "close env", "close"]
