"""The published bundle: its fields, its files, and when it is refused."""

from __future__ import annotations

import datetime
import json
import os
import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rlcore import ConfigurationError, RecordingError
from rlmesh.recorder import SCHEMA, BundleInTheWay, EpisodeRecord, Recorder, load
from rlmesh.recorder.naming import safe_name
from rlmesh.runs.hooks import RunHooks
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.results import EpisodeResult, RunResult

Played = Callable[..., RunResult]


def episode(index: int = 0, **facts: Any) -> EpisodeResult:
    known: dict[str, Any] = {"seed": index, "steps": 3, "reward": 1.5, "terminated": True}
    given: dict[str, Any] = {**known, "truncated": False, **facts}
    return EpisodeResult(index=index, **given)


def result_json(path: Path) -> Any:
    return json.loads((path / "result.json").read_text())


def test_an_empty_recorder_exports_a_valid_document(tmp_path: Path) -> None:
    path = Recorder(result_set_id="mine").export(tmp_path / "b", recorded_at="2026-01-01T00:00:00")

    assert result_json(path) == {
        "schema": SCHEMA,
        "resultSetId": "mine",
        "recordedAt": "2026-01-01T00:00:00",
        "workloads": [],
    }


def test_a_recorder_has_an_id_of_its_own_and_stamps_the_time_in_utc_to_the_microsecond() -> None:
    one, other = Recorder(), Recorder()

    stamp = one.to_dict()["recordedAt"]

    assert one.result_set_id != other.result_set_id
    assert len(one.result_set_id) == 32
    assert datetime.datetime.fromisoformat(stamp).utcoffset() == datetime.timedelta(0)
    assert len(stamp.partition(".")[2]) == len("000000+00:00")


@pytest.mark.parametrize(
    "wrong", [{"fps": 0}, {"fps": 1.5}, {"fps": True}, {"quality": 0}, {"quality": 101}]
)
def test_settings_of_videos_out_of_range_are_value_errors(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Recorder(**wrong)


def test_an_added_result_has_the_published_fields_and_no_others() -> None:
    recorder = Recorder()
    result = RunResult(episodes=(episode(0, success=True, duration_s=0.25), episode(1, seed=None)))

    recorder.add(result, model="m", env="e", config={"lr": 0.1})

    (workload,) = recorder.to_dict()["workloads"]
    assert workload == {
        "model": "m",
        "env": "e",
        "task": "e",
        "config": {"lr": 0.1},
        "numEpisodes": 2,
        "metrics": {"meanReward": 1.5, "successRate": None, "totalSteps": 6},
        "episodes": [
            {
                "index": 0,
                "seed": 0,
                "steps": 3,
                "reward": 1.5,
                "terminated": True,
                "truncated": False,
                "success": True,
                "durationS": 0.25,
                "includedInMetrics": True,
            },
            {
                "index": 1,
                "seed": None,
                "steps": 3,
                "reward": 1.5,
                "terminated": True,
                "truncated": False,
                "success": None,
                "durationS": 0.0,
                "includedInMetrics": True,
            },
        ],
    }


def test_episodes_that_are_not_included_count_in_steps_only() -> None:
    recorder = Recorder()

    workload = recorder.add(
        RunResult(episodes=(episode(success=True),)), model="m", env="e", included_in_metrics=False
    )

    assert (workload.mean_reward, workload.success_rate, workload.total_steps) == (0.0, None, 3)


def test_a_failure_is_no_score_for_a_reader_of_the_published_fields_either() -> None:
    recorder = Recorder()
    lost = episode(1, outcome=Outcome.ENV_ERROR, error="EnvironmentException: boom")

    recorder.add(RunResult(episodes=(episode(0), lost)), model="m", env="e")

    (workload,) = recorder.to_dict()["workloads"]
    assert workload["metrics"]["meanReward"] == 1.5
    assert workload["episodes"][1]["includedInMetrics"] is False
    assert workload["episodes"][1]["reward"] == 0.0


def test_a_reward_that_json_cannot_hold_is_not_counted() -> None:
    record = EpisodeRecord.from_result(episode(reward=float("inf")))

    assert (record.reward, record.included_in_metrics) == (0.0, False)


def test_hooks_of_several_runs_number_their_episodes_on(play: Played, walk: Any) -> None:
    recorder = Recorder()
    hooks = recorder.capture(model="m", env="e", cameras=[])

    play(walk(), hooks, seeds=[7, 8])
    play(walk(), hooks, seeds=[9])

    (workload,) = recorder.workloads
    assert [(one.index, one.seed) for one in workload.episodes] == [(0, 7), (1, 8), (2, 9)]


def test_a_workload_is_there_even_if_the_run_fails_at_once(play: Played) -> None:
    recorder = Recorder()
    hooks = recorder.capture(model="m", env="e")

    with pytest.raises(Exception, match="nowhere"):
        play("nowhere://x", hooks)

    (workload,) = recorder.workloads
    assert (workload.model, workload.episodes) == ("m", [])


def test_files_are_named_as_published_and_collisions_are_numbered(
    play: Played, walk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.mp4").write_bytes(b"a film")

    with Recorder() as recorder:
        hooks = recorder.capture(model="a/b c", env="e", task="..")
        play(walk(named={"video_url": "own.mp4"}), hooks, seeds=[1])
        path = recorder.export(tmp_path / "b")

    (one,) = result_json(path)["workloads"][0]["episodes"]
    assert [(media["camera"], media["path"]) for media in one["media"]] == [
        ("render", "media/w000-a_b_c/unnamed/ep00000/render.mp4"),
        ("default", "media/w000-a_b_c/unnamed/ep00000/default.mp4"),
    ]
    assert one["media"][1] == {
        "camera": "default",
        "kind": "video",
        "path": "media/w000-a_b_c/unnamed/ep00000/default.mp4",
        "format": "mp4",
    }
    assert (path / one["media"][1]["path"]).read_bytes() == b"a film"


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("a b", "a_b"),
        ("..", "unnamed"),
        ("", "unnamed"),
        ("-é-x.", "x"),
        ("a//b", "a_b"),
        ("x" * 999, "x" * 160),
    ],
)
def test_odd_characters_of_labels_become_underscores(label: str, name: str) -> None:
    assert safe_name(label) == name


def films(walk: Any, named: str) -> Any:
    env = walk(named={"video_artifact_path": named})
    env.render_mode = None
    return env


@pytest.mark.parametrize("kind", ["outside", "link", "missing", "folder"])
def test_an_environment_cannot_choose_which_files_of_this_machine_are_bundled(
    kind: str, play: Played, walk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (tmp_path / "secret").write_text("s3cret")
    (here / "folder").mkdir()
    (here / "link").symlink_to(tmp_path / "secret")
    monkeypatch.chdir(here)
    named = {"outside": "../secret", "link": "link", "missing": "no.mp4", "folder": "folder"}[kind]

    with Recorder() as recorder:
        hooks = recorder.capture(model="m", env="e")
        with pytest.warns(UserWarning, match="the video '.*' that the environment names is"):
            play(films(walk, named), hooks, seeds=[1])

        assert recorder.workloads[0].episodes[0].media == ()


def test_a_carried_file_without_an_ending_is_of_format_bin(
    play: Played, walk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "film").write_bytes(b"x")

    with Recorder() as recorder:
        play(films(walk, "film"), recorder.capture(model="m", env="e"), seeds=[1])

        assert [one.format for one in recorder.workloads[0].episodes[0].media] == ["bin"]


def test_a_zip_holds_the_same_with_its_media_stored(
    play: Played, walk: Any, tmp_path: Path
) -> None:
    with Recorder() as recorder:
        play(walk(), recorder.capture(model="m", env="e"), seeds=[1])
        folder = recorder.export(tmp_path / "folder", recorded_at="now")
        zipped = recorder.export(tmp_path / "b.zip", recorded_at="now")

    with zipfile.ZipFile(zipped) as archive:
        packed = {entry.filename: entry.compress_type for entry in archive.infolist()}
        assert all(archive.read(name) == (folder / name).read_bytes() for name in packed)
    assert {name for name, kind in packed.items() if kind == zipfile.ZIP_STORED} == {
        "media/w000-m/e/ep00000/render.mp4",
        "trajectories/w000-m/e/ep00000/steps.npz",
    }
    assert set(packed) == {
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    }


@pytest.mark.parametrize(
    ("archive", "is_file"),
    [(None, True), (True, True), ("zip", True), (False, False), ("folder", False), ("dir", False)],
)
def test_archive_decides_between_a_folder_and_a_zip(
    archive: Any, is_file: bool, tmp_path: Path
) -> None:
    path = Recorder().export(tmp_path / "x.zip", archive=archive)

    assert path.is_file() == is_file
    assert load(path).workloads == []


def test_another_word_for_archive_is_a_value_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="archive is 'tar'"):
        Recorder().export(tmp_path / "x", archive="tar")


def test_an_export_replaces_the_bundle_that_is_there_and_leaves_other_files(
    play: Played, walk: Any, tmp_path: Path
) -> None:
    target = tmp_path / "b"
    with Recorder() as first:
        play(walk(), first.capture(model="old", env="e"), seeds=[1])
        first.export(target)
    (target / "notes.txt").write_text("mine")

    with Recorder() as second:
        play(walk(), second.capture(model="new", env="e"), seeds=[1])
        second.export(target)
        second.export(target)

    assert [path.name for path in (target / "media").iterdir()] == ["w000-new"]
    assert (target / "notes.txt").read_text() == "mine"
    assert load(target).verified
    assert not [path for path in target.iterdir() if path.name.startswith(".")]


def test_an_export_never_overwrites_what_is_no_bundle(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "photos" / "media").mkdir(parents=True)
    recorder = Recorder()

    with pytest.raises(FileExistsError, match="is a file"):
        recorder.export(tmp_path / "file")
    with pytest.raises(BundleInTheWay, match=r"without a 'result\.json'"):
        recorder.export(tmp_path / "photos")
    with pytest.raises(FileExistsError, match="is a folder"):
        recorder.export(tmp_path / "photos", archive="zip")

    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    "odd",
    [
        {"config": {"x": object()}},
        {"config": {"lr": np.float32(1e-3)}},
        {"config": {"x": float("nan")}},
        {"config": {(1, 2): 3}},
        {"config": [1]},
        {"model": 7},
        {"task": Path("x")},
    ],
)
def test_what_json_cannot_hold_is_refused_before_anything_is_kept(
    odd: dict[str, Any], play: Played, walk: Any, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"model": "m", "env": "e", **odd}
    with Recorder() as recorder:
        play(walk(), recorder.capture(model="m", env="e", cameras=[]), seeds=[1])
        with pytest.raises(ConfigurationError, match=r"cannot hold|as text|a dictionary"):
            recorder.add(RunResult(), **given)
        with pytest.raises(ConfigurationError, match=r"cannot hold|as text|a dictionary"):
            recorder.capture(**given)
        found = load(recorder.export(tmp_path / "b"))

    assert [len(workload.episodes) for workload in found.workloads] == [1]


def test_a_result_that_json_cannot_hold_is_refused_before_anything_is_kept(tmp_path: Path) -> None:
    recorder = Recorder()
    odd: Any = np.int64(3)
    with pytest.raises(ConfigurationError, match="the result is what JSON cannot hold"):
        recorder.add(RunResult(episodes=(episode(steps=odd),)), model="m", env="e")

    assert load(recorder.export(tmp_path / "b")).workloads == []


def test_what_a_config_is_afterwards_does_not_matter(tmp_path: Path) -> None:
    config: dict[str, Any] = {"layers": [64, 64], "shape": (2, 3)}
    recorder = Recorder()
    recorder.add(RunResult(), model="m", env="e", config=config)
    config["layers"].append(object())

    found = load(recorder.export(tmp_path / "b"))

    assert found.workloads[0].config == {"layers": [64, 64], "shape": [2, 3]}


def test_after_close_videos_are_gone_and_an_export_says_so(
    play: Played, walk: Any, tmp_path: Path
) -> None:
    recorder = Recorder()
    play(walk(), recorder.capture(model="m", env="e"), seeds=[1])
    staging = recorder.staging
    assert staging is not None

    recorder.close()
    recorder.close()

    assert not staging.exists()
    with pytest.raises(RuntimeError, match="the recorder is closed"):
        recorder.export(tmp_path / "b")
    with pytest.raises(RecordingError, match="closed"):
        recorder.capture(model="m", env="e")


def test_after_close_results_without_videos_are_still_exported_as_published(
    play: Played, walk: Any, tmp_path: Path
) -> None:
    with Recorder() as recorder:
        play(walk(), recorder.capture(model="m", env="e", cameras=[]), seeds=[1])

    with pytest.warns(UserWarning, match="has no trajectories"):
        path = recorder.export(tmp_path / "b")

    (one,) = load(path).workloads[0].episodes
    assert (one.seed, one.trajectory) == (1, None)


@pytest.mark.parametrize("name", ["b", "b.zip"])
def test_an_export_that_the_disk_refuses_leaves_what_was_there(
    name: str, tmp_path: Path, full_disk: Callable[[int], AbstractContextManager[None]]
) -> None:
    target = tmp_path / name
    Recorder(result_set_id="old").export(target)
    large = Recorder()
    large.add(RunResult(), model="m", env="e", config={"text": os.urandom(50_000).hex()})

    with full_disk(20_000), pytest.raises(RecordingError, match="File too large"):
        large.export(target)

    assert load(target).result_set_id == "old"
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("names", [{"cameras": "render"}, {"info_keys": "at"}])
def test_one_name_where_a_list_of_names_is_wanted_is_refused(names: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="lists of names"):
        Recorder().capture(model="m", env="e", **names)


def test_a_capture_is_hooks_of_a_run() -> None:
    assert isinstance(Recorder().capture(model="m", env="e"), RunHooks)


def test_what_only_ours_knows_is_in_a_file_of_its_own(bundle: Path) -> None:
    details = json.loads((bundle / "details.json").read_text())

    assert details["schema"] == "rlmesh.details.v1"
    (workload,) = details["workloads"]
    assert workload["run"]["package_versions"]["rlmesh"]
    assert workload["run"]["asked"] == 2
    assert workload["contract"]["action_space"]["kind"] == "discrete"
    assert workload["contract"]["digest"].startswith("sha256:")
    assert [one["outcome"] for one in workload["episodes"]] == ["success", "success"]
    assert [one["trial"] for one in workload["episodes"]] == [0, 1]
