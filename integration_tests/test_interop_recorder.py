"""The published Recorder and ours write the same document and the same files.

The published package is only run, in an environment of its own, never read.
"""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

import av
import pytest
from rlmesh.recorder import load, write_report

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

SCRIPT = Path(__file__).with_name("interop_recording.py")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, helpers: None) -> dict[str, Path]:
    """A folder of each side, with `bundle` and `bundle.zip`."""
    python: Any = import_module("interop_hub").published_python()
    found: dict[str, Path] = {}
    for side, interpreter in (("published", python), ("ours", sys.executable)):
        found[side] = tmp_path_factory.mktemp(side)
        run = subprocess.run(
            [interpreter, SCRIPT, found[side]],
            cwd=found[side],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert run.returncode == 0, run.stderr
    return found


def document(folder: Path) -> Any:
    found = json.loads((folder / "bundle" / "result.json").read_text(encoding="utf-8"))
    for workload in found["workloads"]:
        for episode in workload["episodes"]:
            assert isinstance(episode.pop("durationS"), float)
    return found


def test_every_field_of_the_document_is_the_same(both: dict[str, Path]) -> None:
    assert document(both["ours"]) == document(both["published"])


def test_the_document_is_written_alike(both: dict[str, Path]) -> None:
    ours, theirs = (
        (both[side] / "bundle" / "result.json").read_text(encoding="utf-8").splitlines()
        for side in ("ours", "published")
    )
    assert [line for line in ours if "durationS" not in line] == [
        line for line in theirs if "durationS" not in line
    ]


def test_media_have_the_same_paths_and_ours_lie_beside(both: dict[str, Path]) -> None:
    files = {
        side: {
            path.relative_to(folder / "bundle").as_posix()
            for path in (folder / "bundle").rglob("*")
            if path.is_file()
        }
        for side, folder in both.items()
    }

    assert files["published"] <= files["ours"]
    more = {path for path in files["ours"] - files["published"] if "/" not in path}
    assert more == {"details.json", "manifest.json"}
    assert {path.partition("/")[0] for path in files["ours"] - files["published"] - more} == {
        "trajectories"
    }


def test_videos_are_of_the_same_kind(both: dict[str, Path]) -> None:
    facts: list[list[tuple[Any, ...]]] = []
    for folder in both.values():
        facts.append([])
        for path in sorted((folder / "bundle").rglob("render.mp4")):
            with av.open(str(path)) as container:
                stream = container.streams.video[0]
                context = stream.codec_context
                name = context.codec.canonical_name
                colours = (context.color_primaries, context.color_trc, context.colorspace)
                size = (stream.width, stream.height, stream.frames, stream.time_base)
                facts[-1].append((path.name, name, *size, *colours, context.color_range))

    assert facts[0] == facts[1]
    assert len(facts[0]) == 3


def test_zips_pack_the_same_files_in_the_same_way(both: dict[str, Path]) -> None:
    packed: dict[str, dict[str, int]] = {}
    for side, folder in both.items():
        with zipfile.ZipFile(folder / "bundle.zip") as archive:
            packed[side] = {entry.filename: entry.compress_type for entry in archive.infolist()}

    assert packed["published"].items() <= packed["ours"].items()


def test_a_published_bundle_is_loaded_and_reported(both: dict[str, Path], tmp_path: Path) -> None:
    for name in ("bundle", "bundle.zip"):
        found = load(both["published"] / name)

        assert not found.verified
        assert json.dumps(found.to_dict()) == json.dumps(
            json.loads((both["published"] / "bundle" / "result.json").read_text(encoding="utf-8"))
        )
        assert found.workloads[0].episodes[0].media[1].read() == b"a film"
        page = write_report(found, tmp_path / "report.html").read_text(encoding="utf-8")
        assert page.count("data:video/mp4;base64,") == 3
        found.close()
