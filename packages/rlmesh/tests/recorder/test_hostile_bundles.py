"""Whatever stands in a bundle's documents, it is told by type or shown as text; nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rlcore import BundleError, Error
from rlmesh.recorder import EpisodeRecord, Recorder, ResultSet, WorkloadRecord, html_report, load
from rlmesh.recorder import replay as played_again
from rlmesh.recorder.export import export
from rlmesh.runs.results import RunResult

Played = Callable[..., RunResult]
Place = tuple[str | int, ...]
HOSTILE = '"><meta http-equiv="refresh" content="0"><img src=x onerror=alert(1)>'
ODD: list[Any] = [
    None, True, -5, 5, 10**400, 1e999, float("nan"), 1.7e308, 0.5, "x", HOSTILE, "\udcff", [], [1],
    {}, {"x": HOSTILE}, [[1]], "media/none",
]  # fmt: skip


def places(document: object, at: Place = ()) -> Iterator[Place]:
    if at:
        yield at
    inner: Any = document
    keys: Any = inner if isinstance(document, dict) else range(len(inner)) if isinstance(
        document, list
    ) else ()  # fmt: skip
    for key in keys:
        yield from places(inner[key], (*at, key))


def put(document: Any, at: Place, value: object) -> None:
    for key in at[:-1]:
        document = document[key]
    document[at[-1]] = value


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle without a manifest, so that its documents can be changed."""
    import gymnasium
    from rlmesh.models.sentinels import RANDOM_SAMPLE
    from rlmesh.runs.run import run

    path = tmp_path_factory.mktemp("hostile") / "b"
    with Recorder(result_set_id="fixed") as recorder:
        hooks = recorder.capture(model="m", env="e", config={"a": 1}, video_info_keys=[])
        env = gymnasium.make("CartPole-v1", max_episode_steps=3, render_mode="rgb_array")
        run(RANDOM_SAMPLE, env, seeds=[1, 2], hooks=hooks, progress=False)
        recorder.export(path)
    (path / "manifest.json").unlink()
    return path


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_changed_document_is_refused_by_type_or_read_safely(
    data: st.DataObject, pristine: Path, tmp_path: Path
) -> None:
    documents = {
        name: json.loads((pristine / name).read_text()) for name in ("result.json", "details.json")
    }
    before = {name: (pristine / name).read_bytes() for name in documents}
    everywhere = [(name, at) for name in documents for at in places(documents[name])]
    for _ in range(data.draw(st.integers(1, 2), label="changes")):
        name, at = data.draw(st.sampled_from(everywhere), label="place")
        # The first change may have taken the place of the second away.
        with suppress(LookupError, TypeError):
            put(documents[name], at, data.draw(st.sampled_from(ODD), label="value"))
    try:
        for name, document in documents.items():
            (pristine / name).write_text(json.dumps(document))
        try:
            found = load(pristine)
        except BundleError:
            return
        assert HOSTILE not in html_report(found)
        for workload in found.workloads:
            workload.to_result().summary()
        for use in (
            lambda: played_again(found),
            lambda: export(found, tmp_path / "again.zip", report=True),
        ):
            with suppress(Error):  # which says what is wrong
                use()
    finally:
        for name, content in before.items():
            (pristine / name).write_bytes(content)


@pytest.mark.parametrize(
    ("document", "at", "value"),
    [
        ("result.json", ("episodes", 0, "seed"), "1"),
        ("result.json", ("episodes", 0, "reward"), float("nan")),
        ("result.json", ("episodes", 0, "steps"), float("inf")),
        ("result.json", ("episodes", 0, "durationS"), 10**400),
        ("result.json", ("config",), [["a", 1]]),
        ("details.json", ("episodes", 0, "predictMs"), "<b>"),
        ("details.json", ("episodes", 0, "trial"), HOSTILE),
        ("details.json", ("episodes", 0, "error"), 5),
        ("details.json", ("run",), [1]),
        ("details.json", ("run", "telemetry"), [{"op": 1}]),
        ("details.json", ("run", "package_versions"), [1]),
        ("details.json", ("run", "asked"), "many"),
        ("details.json", ("contract",), [1]),
        ("details.json", ("replay",), [1]),
    ],
    ids=str,
)
def test_a_value_of_another_type_is_refused(
    document: str, at: Place, value: object, pristine: Path
) -> None:
    path = pristine / document
    before = path.read_bytes()
    changed = json.loads(before)
    put(changed["workloads"][0], at, value)
    path.write_text(json.dumps(changed))
    try:
        with pytest.raises(BundleError):
            load(pristine)
    finally:
        path.write_bytes(before)


def test_a_contract_without_spaces_is_refused_when_it_is_compared(pristine: Path) -> None:
    found = load(pristine)
    found.workloads[0].details["contract"] = {"id": "CartPole-v1"}

    with pytest.raises(BundleError, match="which spaces were recorded"):
        played_again(found)


def test_every_field_of_a_record_is_text_in_the_page() -> None:
    hostile: Any = HOSTILE
    episode = EpisodeRecord(
        hostile, hostile, hostile, 1.0, True, False, trial=hostile, error=HOSTILE, task=HOSTILE
    )
    object.__setattr__(episode, "steps", 3)
    workload = WorkloadRecord(HOSTILE, HOSTILE, HOSTILE, {HOSTILE: HOSTILE}, [episode])

    page = html_report(ResultSet(HOSTILE, [workload], HOSTILE), title=HOSTILE)

    assert "<meta http-equiv=&quot;refresh" not in page
    assert HOSTILE not in page
    assert "<img" not in page
    for directive in ("base-uri", "form-action", "frame-src", "object-src", "connect-src"):
        assert f"{directive} &#x27;none&#x27;" in page


def test_lone_surrogates_make_a_report_all_the_same(
    play: Played, walk: Any, tmp_path: Path
) -> None:
    with Recorder() as recorder:
        play(walk(), recorder.capture(model="\udcff", env="e", task="\udcff"), seeds=[1])
        path = recorder.export(tmp_path / "b", report=True)

    assert "? on e" in (path / "report.html").read_text(encoding="utf-8")
    assert load(path).workloads[0].model == "\udcff"


@pytest.mark.parametrize("rewards", [(1e17, 1e17), (-1e300, 1e300), (5e-324, 1e-323)], ids=str)
def test_returns_of_any_size_are_drawn(rewards: tuple[float, ...]) -> None:
    episodes = [EpisodeRecord(at, at, 1, one, True, False) for at, one in enumerate(rewards)]

    page = html_report(ResultSet("r", [WorkloadRecord("m", "e", "e", {}, episodes)]))

    assert not re.search(r"\b(nan|inf)\b", page.partition("<script>")[0])
