"""Replacing a bundle: nothing of somebody else's is lost, and of two bundles one is whole."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from rlcore import RecordingError
from rlmesh.recorder import BundleInTheWay, Recorder, load
from rlmesh.runs.results import RunResult

Played = Callable[..., RunResult]
MOVES = 9  # four old entries aside, one folder renamed, and four new ones put in place


@pytest.fixture
def old(tmp_path: Path, play: Played, walk: Any) -> Path:
    with Recorder(result_set_id="old") as recorder:
        play(walk(), recorder.capture(model="m", env="e", cameras=[]), seeds=[1])
        return recorder.export(tmp_path / "b")


@pytest.fixture
def new(play: Played, walk: Any) -> Recorder:
    recorder = Recorder(result_set_id="new")
    play(walk(), recorder.capture(model="m", env="e", cameras=[]), seeds=[1, 2])
    return recorder


def interrupting(
    monkeypatch: pytest.MonkeyPatch, at: int, *, for_ever: bool = False, error: Any
) -> None:
    """Interrupt a process before its file number `at` is renamed."""
    rename, count = Path.rename, iter(range(1000))

    def renamed(self: Path, target: Path) -> Path:
        number = next(count)
        if number == at or (for_ever and number > at):
            raise error
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", renamed)


@pytest.mark.parametrize("at", range(MOVES))
def test_ctrl_c_while_a_bundle_is_replaced_leaves_the_new_one(
    at: int, old: Path, new: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        interrupting(patched, at, error=KeyboardInterrupt)
        with pytest.raises(KeyboardInterrupt):
            new.export(old)

    found = load(old)
    assert (found.result_set_id, found.verified) == ("new", True)
    assert not [path for path in old.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("at", range(MOVES))
def test_an_export_that_was_killed_is_no_obstacle_to_the_next(
    at: int, old: Path, new: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        interrupting(patched, at, for_ever=True, error=KeyboardInterrupt)
        patched.setattr(shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            new.export(old)
    assert [path for path in old.iterdir() if path.name.startswith(".rlmesh-export-")]

    Recorder(result_set_id="third").export(old)

    assert load(old).result_set_id == "third"
    assert [path.name for path in old.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("as_what", [KeyboardInterrupt, OSError])
def test_ctrl_c_while_the_old_bundle_is_deleted_leaves_nothing_of_it(
    as_what: type[BaseException], old: Path, new: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    rmtree, interruptions = shutil.rmtree, iter([True])

    def interrupted(path: Path, *, ignore_errors: bool = False) -> None:
        if next(interruptions, False):
            try:
                raise KeyboardInterrupt
            except KeyboardInterrupt:
                raise as_what from None  # OSError: as CPython does, which closes a handle again
        rmtree(path, ignore_errors=ignore_errors)

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", interrupted)
        with pytest.raises(KeyboardInterrupt):
            new.export(old)

    assert load(old).result_set_id == "new"
    assert not [path for path in old.iterdir() if path.name.startswith(".")]


def test_ctrl_c_while_a_file_of_a_zip_is_open_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Recorder(result_set_id="old").export(tmp_path / "b.zip")
    opened = zipfile.ZipFile.open
    handles: list[Any] = []

    def interrupted(self: zipfile.ZipFile, name: Any, mode: Any = "r", **more: Any) -> Any:
        handles.append(opened(self, name, mode, **more))
        if mode == "w" and len(handles) > 2:
            raise KeyboardInterrupt
        return handles[-1]

    with monkeypatch.context() as patched:
        patched.setattr(zipfile.ZipFile, "open", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Recorder().export(tmp_path / "b.zip")

    assert load(tmp_path / "b.zip").result_set_id == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["b.zip"]


@pytest.mark.parametrize("at", range(4))
def test_what_cannot_be_moved_aside_stays_in_place(
    at: int, old: Path, new: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        interrupting(patched, at, error=OSError(16, "busy"))
        with pytest.raises(RecordingError, match="busy"):
            new.export(old)

    found = load(old)
    assert (found.result_set_id, found.verified) == ("old", True)
    assert not [path for path in old.iterdir() if path.name.startswith(".")]


def test_a_zip_that_a_killed_export_left_is_removed_by_the_next(tmp_path: Path) -> None:
    left = tmp_path / f".b.zip-{'0' * 32}"
    left.write_bytes(b"half")
    other = tmp_path / ".b.zip-mine"
    other.write_bytes(b"mine")

    Recorder().export(tmp_path / "b.zip")

    assert sorted(path.name for path in tmp_path.iterdir()) == [".b.zip-mine", "b.zip"]


@pytest.mark.parametrize("name", ["b", "b.zip"])
def test_of_exports_at_the_same_time_to_one_path_one_is_there_whole(
    name: str, tmp_path: Path
) -> None:
    def export(number: int) -> Path:
        return Recorder(result_set_id=str(number)).export(tmp_path / name, report=True)

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(export, range(24))) == {tmp_path / name}

    assert load(tmp_path / name).verified
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    "name",
    ["manifest.json", "details.json", "report.html", "result.json", "media/a.mp4", "trajectories"],
)
def test_a_folder_with_files_of_somebody_else_is_not_written_into(
    name: str, tmp_path: Path
) -> None:
    mine = tmp_path / "site" / name
    mine.parent.mkdir(parents=True)
    mine.write_text('{"name": "my page"}')

    with pytest.raises(BundleInTheWay, match="is there without"):
        Recorder().export(tmp_path / "site")

    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [mine]
    assert mine.read_text() == '{"name": "my page"}'


@pytest.mark.parametrize("name", ["report.html", "media/notes.txt", "trajectories/mine/x.npz"])
def test_a_file_that_was_put_into_a_bundle_is_not_deleted_with_it(name: str, old: Path) -> None:
    mine = old / name
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text("mine")

    with pytest.raises(BundleInTheWay, match="none of the bundle's files"):
        Recorder().export(old)

    assert mine.read_text() == "mine"
    assert load(old).result_set_id == "old"


def test_a_bundle_as_the_published_recorder_writes_it_is_replaced(
    tmp_path: Path, play: Played, walk: Any
) -> None:
    with Recorder() as recorder:
        play(walk(), recorder.capture(model="m", env="e", trajectories=False), seeds=[1])
        path = recorder.export(tmp_path / "b")
    for name in ("details.json", "manifest.json"):
        (path / name).unlink()

    Recorder(result_set_id="new").export(path)

    assert load(path).result_set_id == "new"
    assert not (path / "media").exists()


def test_a_zip_that_is_no_bundle_is_not_overwritten(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
        archive.writestr("beach.jpg", b"...")
    (tmp_path / "text.zip").write_text("mine")
    (tmp_path / "empty.zip").touch()
    before = (tmp_path / "photos.zip").read_bytes()

    with pytest.raises(BundleInTheWay, match="beach"):
        Recorder().export(tmp_path / "photos.zip")
    with pytest.raises(BundleInTheWay, match="and no bundle"):
        Recorder().export(tmp_path / "text.zip")
    Recorder().export(tmp_path / "empty.zip")

    assert (tmp_path / "photos.zip").read_bytes() == before
    assert (tmp_path / "text.zip").read_text() == "mine"
    assert load(tmp_path / "empty.zip").verified
