"""Trackers get a training's numbers; one that fails costs points and nothing else."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from rlcore import ConfigurationError
from rleaas.training.tracking.process import described, serve
from rleaas.training.tracking.pump import Pump
from rleaas.training.tracking.settings import validate_tracking
from rleaas.training.tracking.sink import TrackingSink, tracked
from rleaas.training.tracking.trackers import Point, RunOf, Tracker
from rleaas.training.trainer import Progress


class Sink:
    """A sink that notes what it gets."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.episodes = 0
        self.stopped = False

    def episode_finished(self, progress: Progress) -> None:
        self.episodes += 1

    def update_finished(self, progress: Progress, diagnostics: Mapping[str, float]) -> None:
        pass

    def log(self, line: str) -> None:
        self.lines.append(line)

    def alert(self, kind: str, data: Mapping[str, object]) -> None:
        self.lines.append(kind)

    def checkpoint_saved(
        self, path: Path, label: str, progress: Progress, state: Path | None = None
    ) -> None:
        self.lines.append(label)

    def stop_requested(self) -> bool:
        return self.stopped


def progress(episode: int, **facts: Any) -> Progress:
    told: dict[str, Any] = {
        "episode": episode,
        "timestep": 10 * episode,
        "episode_reward": float(episode),
        "episode_length": 10,
        "avg_reward": episode / 2,
        "success_rate": None,
        "wall_seconds": 1.0,
    }
    return Progress(**(told | facts))


def run_in(directory: Path) -> RunOf:
    return RunOf("job_1", "first", directory / "job_1", directory, facts={"gamma": 0.9, "net": "a"})


Places = dict[str, Mapping[str, object]]


def train(sink: Sink, tracking: object, directory: Path, episodes: int = 3, **how: Any) -> Places:
    """Play a training of so many episodes, and return where the trackers say that they are."""
    places: Places = {}
    settings = validate_tracking("tracking", tracking)
    with tracked(sink, settings, run_in(directory), placed=places.__setitem__, **how) as wrapped:
        for n in range(1, episodes + 1):
            wrapped.episode_finished(progress(n, verifier_scores={"v 1": 0.5}))
            wrapped.update_finished(progress(n), {"entropy": 0.7, "loss": float("nan")})
    return places


@pytest.mark.slow
def test_tensorboard_reads_the_events_where_the_record_says(tmp_path: Path) -> None:
    sink = Sink()
    places = train(sink, {"tensorboard": True}, tmp_path, close_seconds=50)

    reader: Any = import_module("tensorboard.backend.event_processing.event_accumulator")
    events = reader.EventAccumulator(str(places["tensorboard"]["directory"]))
    events.Reload()
    rewards = [(one.step, one.value) for one in events.Scalars("episode_reward")]
    assert rewards == [(10, 1.0), (20, 2.0), (30, 3.0)]
    assert events.Tags()["scalars"] == [
        *("episode_reward", "episode_length", "avg_reward", "verifier/v 1", "update/entropy")
    ]
    assert (sink.lines, sink.episodes) == ([], 3)


MLFLOW = """
import json, sys
from pathlib import Path
from mlflow import MlflowClient
from rleaas.training.tracking.trackers import MLflow, Point, RunOf

shared = Path(sys.argv[1])
settings = {"experiment": "e", "run_name": "r"}
run = RunOf("job_1", "first", shared / "job_1", shared, settings, {"gamma": 0.9, "net": "a"})
places = []
for step in (10, 20):
    tracker = MLflow()
    places.append(tracker.open(run))
    tracker.log([Point(step, 1e9 + step, {"episode_reward": step / 10, "verifier/v:1": 0.5})])
    tracker.close()
client = MlflowClient(tracking_uri=places[0]["tracking_uri"])
found = client.get_run(places[0]["run_id"])
history = client.get_metric_history(places[0]["run_id"], "episode_reward")
print(json.dumps({
    "places": places,
    "run": [found.info.run_name, found.info.status],
    "params": found.data.params,
    "metrics": sorted(found.data.metrics),
    "history": [[one.step, one.value, one.timestamp] for one in history],
}))
"""
"""In a process of its own, as it is used: the library warns and logs as it likes."""


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_mlflow_has_the_run_and_a_second_attempt_goes_on_with_it(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", MLFLOW, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    told = json.loads(ran.stdout.splitlines()[-1])

    first, second = told.pop("places")
    assert first == second
    assert first["tracking_uri"] == f"sqlite:///{tmp_path / 'mlflow.db'}"
    assert told == {
        "run": ["r", "FINISHED"],
        "params": {"gamma": "0.9", "net": "a"},
        "metrics": ["episode_reward", "verifier/v_1"],
        "history": [[10, 1.0, 1_000_000_010_000], [20, 2.0, 1_000_000_020_000]],
    }


@pytest.mark.slow
def test_weights_and_biases_keeps_the_run_in_files_when_it_is_offline(tmp_path: Path) -> None:
    sink = Sink()
    tracking = {"wandb": {"mode": "offline", "project": "p"}}
    places = train(sink, tracking, tmp_path, close_seconds=50)

    assert sink.lines == []
    assert (places["wandb"]["project"], places["wandb"]["mode"]) == ("p", "offline")
    (file,) = Path(str(places["wandb"]["directory"])).parent.glob("*.wandb")
    assert rewards_of(file) == [1.0, 2.0, 3.0]


def rewards_of(file: Path) -> list[float]:
    """Read the rows: records of LevelDB's log format, each a message of the library."""
    content = file.read_bytes()
    assert content[:4] == b":W&B"
    assert len(content) < 2**15  # so that no record is in parts
    record: Any = import_module("wandb.proto.wandb_internal_pb2").Record
    found: list[float] = []
    at = 7
    while at < len(content):
        length = int.from_bytes(content[at + 4 : at + 6], "little")
        one = record.FromString(content[at + 7 : at + 7 + length])
        at += 7 + length
        found += [
            json.loads(item.value_json)
            for item in one.history.item
            if "episode_reward" in (item.key, *item.nested_key)
        ]
    return found


@pytest.fixture
def silent_server() -> Iterator[str]:
    """An address where somebody takes connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(64)
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.slow
def test_a_server_that_is_gone_or_hangs_costs_its_points_and_one_line(
    tmp_path: Path, silent_server: str
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: nobody answers there
        gone = f"http://127.0.0.1:{taken.getsockname()[1]}"
        for address in (gone, silent_server):
            sink = Sink()
            began = time.monotonic()
            with tracked(
                sink,
                validate_tracking("tracking", {"mlflow": {"tracking_uri": address}}),
                run_in(tmp_path),
                placed=lambda name, place: pytest.fail(f"{name} is at {place}"),
                close_seconds=3.0,
            ) as wrapped:
                for n in range(2000):
                    wrapped.episode_finished(progress(n))
                trained = time.monotonic() - began
            assert trained < 2.5  # starting the process included; no step waits for it
            assert time.monotonic() - began < trained + 8
            assert sink.episodes == 2000
            (line,) = sink.lines
            assert line.startswith("tracking by mlflow: 2000 of 2000 points were lost: ")


def test_a_package_that_is_missing_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_none(name: str) -> None:
        assert name == "wandb"

    monkeypatch.setattr("rleaas.training.tracking.settings.find_spec", find_none)
    sink = Sink()

    train(sink, {"wandb": True}, tmp_path)

    assert sink.episodes == 3
    assert sink.lines == [
        "no tracking by wandb: 'wandb' is not installed; pip install 'rleaas[track]' brings it"
    ]


def test_without_tracking_the_sink_is_the_same(tmp_path: Path) -> None:
    sink = Sink()
    with tracked(sink, None, run_in(tmp_path), placed=print) as same:
        assert same is sink


def child(code: str) -> list[str]:
    return [sys.executable, "-c", "import sys, json, time\n" + code]


def fed(code: str, seconds: float, points: int = 5) -> tuple[Pump, int]:
    pump = Pump("x", run_in(Path("nowhere")), placed=Places().__setitem__, command=child(code))
    for n in range(points):
        pump.offer(Point(n, 0.0, {"a": 1.0}))
    return pump, pump.close(time.monotonic() + seconds)


def test_a_tracker_that_will_not_end_is_ended() -> None:
    began = time.monotonic()
    pump, lost = fed("time.sleep(600)", 0.5)

    assert time.monotonic() - began < 10
    assert (lost, pump.error) == (5, "it did not come to its end in time")


def test_a_tracker_that_reads_nothing_blocks_nobody() -> None:
    began = time.monotonic()
    pump, lost = fed("time.sleep(600)", 1.0, points=60_000)

    assert time.monotonic() - began < 20
    assert (lost, pump.offered) == (60_000, 60_000)


def test_a_tracker_that_dies_is_said_with_its_code() -> None:
    pump, lost = fed("sys.stdin.read(); sys.exit(3)", 20)

    assert (lost, pump.error) == (5, "its process ended with 3")


def test_the_worker_keeps_its_token_from_trackers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLEAAS_WORKER_TOKEN", "secret")
    code = (
        "import os\n"
        "print(json.dumps({'error': str([k for k in os.environ if k.startswith('RLEAAS')])}))\n"
        "sys.stdin.read()"
    )
    assert fed(code, 20)[0].error == "[]"


class Flaky:
    """A tracker that is down for its first calls."""

    def __init__(self, failures: int) -> None:
        self.left = failures
        self.kept: list[int] = []

    def open(self, run: RunOf) -> dict[str, str]:
        self._fail()
        return {"at": run.job_id}

    def log(self, points: Sequence[Point]) -> None:
        self._fail()
        self.kept += [one.step for one in points]

    def close(self) -> None:
        self._fail()

    def _fail(self) -> None:
        if self.left:
            self.left -= 1
            raise ConnectionError("down, and the key is wandb-secret")


def served(tracker: Tracker, batches: list[list[int]], clock: Callable[[], float]) -> list[Any]:
    run = run_in(Path("d"))
    first: dict[str, object] = {
        "job_id": run.job_id,
        "name": run.name,
        "directory": "d",
        "shared": "d",
        "settings": {},
        "facts": {},
    }
    lines = [json.dumps(first), *(json.dumps([[n, 0.0, {}] for n in one]) for one in batches)]
    told: list[Any] = []
    serve(tracker, lines, told.append, clock)
    return told


def test_a_tracker_that_comes_back_has_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "wandb-secret")
    times = iter(range(0, 100, 3))
    flaky = Flaky(2)

    told = served(flaky, [[], [1, 2], [3], [4, 5]], lambda: next(times))

    assert flaky.kept == [3, 4, 5]
    assert sum(one.get("lost", 0) for one in told) == 2
    assert {"place": {"at": "job_1"}} in told
    assert "wandb-secret" not in json.dumps(told)


def test_a_secret_of_the_environment_is_never_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "tok_1")
    assert described(ValueError("at tok_1:\n no")) == "ValueError: at …: no"


@pytest.mark.parametrize(
    ("tracking", "words"),
    [
        ({"tensorbord": True}, "unknown key 'tensorbord'"),
        ({"mlflow": {"tracking_uri": "/etc/mlruns"}}, "http:// or https:// address"),
        ({"mlflow": {"tracking_uri": "http://u:p4ss@h/"}}, "without credentials"),
        ({"wandb": {"api_key": "k"}}, "would be stored with the job"),
        ({"wandb": {"mode": "on"}}, "must be one of online, offline"),
        ({"tensorboard": 3}, "must be an object"),
        ({"wandb": {"project": " "}}, "must not be blank"),
        ([], "must be an object"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(tracking: object, words: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        validate_tracking("tracking", tracking)

    assert words in refused.value.message
    assert "p4ss" not in str(refused.value)


def test_settings_are_those_that_are_told() -> None:
    told = {"tensorboard": True, "mlflow": None, "wandb": {"project": " p ", "entity": None}}
    assert validate_tracking("tracking", told) == {"tensorboard": {}, "wandb": {"project": "p"}}
    assert validate_tracking("tracking", {"wandb": False}) == {}


def test_everything_else_is_handed_on() -> None:
    sink = Sink()
    wrapped = TrackingSink(sink, [])
    wrapped.log("a")
    wrapped.alert("b", {})
    wrapped.checkpoint_saved(Path("x"), "c", progress(1))
    sink.stopped = True

    assert (sink.lines, wrapped.stop_requested()) == (["a", "b", "c"], True)
