"""Bundles are read back as they were written, and what nobody wrote is refused by name."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rlcore import BundleError, ConfigurationError
from rlmesh.recorder import Recorder, ResultSet, load, merge
from rlmesh.recorder.export import export
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.results import EpisodeResult, RunResult

Played = Callable[..., RunResult]


def zipped(folder: Path, target: Path) -> Path:
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder).as_posix())
    return target


def edited(path: Path, change: Callable[[Any], object]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_a_bundle_comes_back_with_everything(kind: str, bundle: Path, tmp_path: Path) -> None:
    path = bundle if kind == "folder" else zipped(bundle, tmp_path / "b.zip")

    found = load(path)

    assert (found.result_set_id, found.verified) == ("fixed", True)
    assert found.to_dict() == json.loads((bundle / "result.json").read_text())
    (workload,) = found.workloads
    assert [one.outcome for one in workload.episodes] == [Outcome.SUCCESS, Outcome.SUCCESS]
    for one in workload.episodes:
        assert one.trajectory is not None
        with one.trajectory.load() as steps:
            assert steps.rewards.sum() == pytest.approx(one.reward)
    found.close()


def test_a_workload_becomes_the_result_that_it_was_made_of(
    play: Played, walk: Any, tmp_path: Path
) -> None:
    with Recorder() as recorder:
        result = play(walk(), recorder.capture(model="m", env="e", cameras=[]))
        path = recorder.export(tmp_path / "b")

    again = load(path).workloads[0].to_result()

    assert again.episodes == result.episodes
    assert again.package_versions == result.package_versions
    assert again.environment == result.environment
    assert again.mean_reward_interval == result.mean_reward_interval


def test_failures_come_back_with_their_outcome_and_words(tmp_path: Path) -> None:
    recorder = Recorder()
    lost = EpisodeResult(
        index=0, seed=4, steps=2, reward=None, terminated=False, truncated=False,
        outcome=Outcome.TIMEOUT, error="CallTimeout: too long", trial=9, attempts=3,
    )  # fmt: skip
    recorder.add(RunResult(episodes=(lost,)), model="m", env="e")

    (one,) = load(recorder.export(tmp_path / "b")).workloads[0].episodes

    assert one.to_result() == lost


def test_a_bundle_of_the_published_recorder_is_read_without_its_manifest(bundle: Path) -> None:
    for name in ("manifest.json", "details.json"):
        (bundle / name).unlink()

    found = load(bundle)

    assert not found.verified
    assert [one.outcome for one in found.workloads[0].episodes] == [Outcome.SUCCESS] * 2
    assert [one.trajectory for one in found.workloads[0].episodes] == [None, None]


def test_merged_files_of_other_recorders_keep_apart(bundle: Path, tmp_path: Path) -> None:
    paths = ("film.mp4", "media/a/x.mp4", "media/b/x.mp4", "media/y.mp4", "media/a/a/x.mp4")
    for path in paths:
        (bundle / path).parent.mkdir(parents=True, exist_ok=True)
        (bundle / path).write_text(path)
    media = [{"camera": "c", "kind": "video", "format": "mp4", "path": path} for path in paths]
    for name in ("manifest.json", "details.json"):
        (bundle / name).unlink()
    edited(
        bundle / "result.json",
        lambda document: document["workloads"][0]["episodes"][0].update(media=media),
    )

    found = load(export(merge(bundle), tmp_path / "merged"))

    merged = found.workloads[0].episodes[0].media
    assert [one.read().decode() for one in merged] == list(paths)
    assert all(one.path.startswith("media/w000-walker/") for one in merged)
    assert len({one.path for one in merged}) == len(paths)


@pytest.mark.parametrize("name", ["result.json", "details.json", "steps.npz"])
@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_a_file_that_was_changed_is_noticed(
    name: str, kind: str, bundle: Path, tmp_path: Path
) -> None:
    (victim, *_) = sorted(bundle.rglob(name))
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)
    path = bundle if kind == "folder" else zipped(bundle, tmp_path / "b.zip")

    with pytest.raises(BundleError, match="is not the file that was recorded") as caught:
        load(path)

    assert caught.value.code == "tampered"
    assert caught.value.path == victim.relative_to(bundle).as_posix()


def test_a_file_that_is_missing_is_noticed_even_unverified(bundle: Path) -> None:
    (victim, *_) = sorted(bundle.rglob("steps.npz"))
    victim.unlink()

    for verify in (True, False):
        with pytest.raises(BundleError, match=r"steps\.npz' is missing"):
            load(bundle, verify=verify)


def test_without_verification_a_changed_bundle_is_read_as_it_is(bundle: Path) -> None:
    edited(bundle / "result.json", lambda document: document.update(resultSetId="other"))

    found = load(bundle, verify=False)

    assert (found.result_set_id, found.verified) == ("other", False)


@pytest.mark.parametrize(
    "name", ["../evil", "/etc/evil", "a/../../evil", "C:/evil", "a\\evil", "a//b", "./a"]
)
def test_a_zip_with_a_path_that_leads_out_is_refused(
    name: str, bundle: Path, tmp_path: Path
) -> None:
    path = zipped(bundle, tmp_path / "b.zip")
    with zipfile.ZipFile(path, "a") as archive:
        entry = zipfile.ZipInfo("x")
        entry.filename = name  # the constructor would clean some of them
        archive.writestr(entry, b"evil")

    with pytest.raises(BundleError, match="leads out of the bundle"):
        load(path)


def test_a_zip_with_a_link_or_the_same_file_twice_is_refused(bundle: Path, tmp_path: Path) -> None:
    linked, doubled = (zipped(bundle, tmp_path / name) for name in ("l.zip", "d.zip"))
    with zipfile.ZipFile(linked, "a") as archive:
        entry = zipfile.ZipInfo("link")
        entry.external_attr = 0o120777 << 16
        archive.writestr(entry, "/etc/passwd")
    with zipfile.ZipFile(doubled, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("result.json", b"{}")

    with pytest.raises(BundleError, match="'link' is a link"):
        load(linked)
    with pytest.raises(BundleError, match=r"has 'result\.json' twice"):
        load(doubled)


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "media/../../secret"])
def test_media_that_lead_out_of_a_folder_are_refused(path: str, bundle: Path) -> None:
    (bundle.parent / "secret").write_text("s3cret")
    media = {"camera": "c", "kind": "video", "format": "mp4", "path": path}
    edited(
        bundle / "result.json",
        lambda document: document["workloads"][0]["episodes"][0].update(media=[media]),
    )

    with pytest.raises(BundleError, match="leads out of the bundle"):
        load(bundle, verify=False)


def test_a_link_in_a_folder_is_not_followed_out_of_it(bundle: Path) -> None:
    (bundle.parent / "secret.mp4").write_text("s3cret")
    (bundle / "film.mp4").symlink_to(bundle.parent / "secret.mp4")
    media = {"camera": "c", "kind": "video", "format": "mp4", "path": "film.mp4"}
    edited(
        bundle / "result.json",
        lambda document: document["workloads"][0]["episodes"][0].update(media=[media]),
    )

    (film,) = load(bundle, verify=False).workloads[0].episodes[0].media

    with pytest.raises(BundleError, match="a link that leads out"):
        film.read()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is no JSON"),
        (b"[]", "is no JSON object"),
        (b'{"schema": "other"}', "is of schema 'other'"),
        (b'{"schema": "rlmesh.result.v1"}', "is no result of a run"),
        (b"[" * 100_000, "is no JSON"),
        (
            b'{"schema": "rlmesh.result.v1", "resultSetId": "x", "workloads": [{"model": 1}]}',
            "is no result of a run",
        ),
    ],
    ids=["empty", "list", "foreign", "bare", "deep", "odd"],
)
def test_a_document_that_is_no_result_is_refused(content: bytes, told: str, tmp_path: Path) -> None:
    (tmp_path / "result.json").write_bytes(content)

    with pytest.raises(BundleError, match=told):
        load(tmp_path)


def test_what_is_no_bundle_is_refused(tmp_path: Path, bundle: Path) -> None:
    (tmp_path / "text.zip").write_text("hello")
    whole = zipped(bundle, tmp_path / "b.zip").read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[: len(whole) // 2])

    for path, told in (
        (tmp_path / "nothing", "there is no bundle"),
        (tmp_path / "text.zip", "is no bundle"),
        (tmp_path / "cut.zip", "is no bundle"),
        (tmp_path, r"there is no 'result\.json'"),
    ):
        with pytest.raises(BundleError, match=told):
            load(path)


def test_a_document_of_any_size_is_not_read_into_memory(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlmesh.recorder.loading.LARGEST_TEXT", 1000)
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("result.json", b" " * 10_000_000)

    with pytest.raises(BundleError, match="has more than 1000 bytes"):
        load(bomb)


def test_a_zip_whose_bytes_are_damaged_is_refused(bundle: Path, tmp_path: Path) -> None:
    path = zipped(bundle, tmp_path / "b.zip")
    with zipfile.ZipFile(path) as archive:
        entry = archive.getinfo("details.json")
    content = bytearray(path.read_bytes())
    content[entry.header_offset + 100] ^= 255
    path.write_bytes(content)

    with pytest.raises(BundleError, match=r"details\.json' is damaged"):
        load(path)


def recorded(play: Played, walk: Any, target: Path, *seeds: int, **options: Any) -> Path:
    with Recorder() as recorder:
        play(walk(), recorder.capture(model="m", env="e", **options), seeds=seeds)
        return recorder.export(target)


def test_merged_bundles_have_all_workloads_and_files(
    play: Played, walk: Any, tmp_path: Path
) -> None:
    one = recorded(play, walk, tmp_path / "one", 1)
    two = recorded(play, walk, tmp_path / "two.zip", 2, cameras=[], parquet=True)

    joint = merge(one, two, result_set_id="joint")
    path = export(joint, tmp_path / "joint")
    joint.close()

    found = load(path)
    assert (found.result_set_id, found.verified, joint.verified) == ("joint", True, True)
    assert [one.episodes[0].seed for one in found.workloads] == [1, 2]
    (film,) = found.workloads[0].episodes[0].media
    assert film.path == "media/w000-m/e/ep00000/render.mp4"
    assert film.read() == (one / film.path).read_bytes()
    steps = found.workloads[1].episodes[0].trajectory
    assert steps is not None
    assert steps.path == "trajectories/w001-m/e/ep00000/steps.npz"
    assert steps.parquet == "trajectories/w001-m/e/ep00000/steps.parquet"
    with steps.load() as trajectory:
        assert trajectory.steps == 5


def test_the_same_episodes_are_not_counted_twice(bundle: Path) -> None:
    copy = bundle.with_name("copy")
    shutil.copytree(bundle, copy)

    with pytest.raises(ConfigurationError, match="'fixed' is there twice"):
        merge(bundle, copy)
    with pytest.raises(ConfigurationError, match="nothing to merge"):
        merge()


def test_records_made_in_memory_say_that_they_have_no_files() -> None:
    from rlmesh.recorder import MediaRef, TrajectoryRef

    with pytest.raises(BundleError, match="made in memory"):
        MediaRef("c", "video", "a.mp4", "mp4").read()
    with pytest.raises(BundleError, match="made in memory"):
        TrajectoryRef("a.npz", 1).load()
    assert ResultSet("x").to_dict(recorded_at="now")["workloads"] == []
