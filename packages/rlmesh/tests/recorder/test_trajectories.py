"""Steps come back as they were taken, whatever they are made of."""

from __future__ import annotations

import io
import json
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rlcore import BundleError, MissingDependencyError
from rlmesh.recorder import Recorder, Trajectory, load
from rlmesh.recorder.columns import ValueColumn
from rlmesh.recorder.digests import digest_of
from rlmesh.recorder.spool import KEPT, Spool
from rlmesh.recorder.tagged import from_tagged, to_tagged
from rlmesh.recorder.trajectory import TrajectoryWriter
from rlmesh.runs.hooks import StepEvent
from rlmesh.runs.results import RunResult
from rlmesh.values import Tensor

Played = Callable[..., RunResult]


def step(number: int, observation: Any, action: Any, **facts: Any) -> StepEvent:
    known: dict[str, Any] = {"episode": 0, "seed": 0, "terminated": False, "truncated": False}
    known |= {"reward": float(number), "info": {}, "predict_ms": 0.5, "step_ms": 1.5}
    return StepEvent(step=number, observation=observation, action=action, **{**known, **facts})


def written(folder: Path, steps: list[StepEvent], seen: list[Any], **options: Any) -> Trajectory:
    given: dict[str, Any] = {"observations": True, "info_keys": (), **options}
    writer = TrajectoryWriter(folder, **given)
    for event, following in zip(steps, seen, strict=True):
        writer.add(event, following)
    writer.write(folder / "t.npz")
    writer.close()
    return Trajectory((folder / "t.npz").open("rb"), "t.npz")


def test_a_recorded_run_has_every_step(bundle: Path, walk: Any) -> None:
    (workload,) = load(bundle).workloads
    first = workload.episodes[0]
    assert first.trajectory is not None
    with first.trajectory.load() as steps:
        env = walk()
        observation, _ = env.reset(seed=first.seed)
        assert steps.observation(0).tobytes() == observation.tobytes()
        for number in range(steps.steps):
            action = steps.action(number)
            observation, reward, terminated, truncated, info = env.step(action)
            assert steps.observation(number + 1).tobytes() == observation.tobytes()
            assert steps.rewards[number] == reward
            assert (steps.terminated[number], steps.truncated[number]) == (terminated, truncated)
            assert steps.infos["at"][number] == info["at"]
            assert steps.digests[number + 1] == digest_of(observation).hex()
        assert steps.steps == first.steps == 5
        assert steps.rewards.sum() == pytest.approx(first.reward)
        assert (steps.step_ms > 0).all()
        with pytest.raises(IndexError, match="no step 5"):
            steps.action(5)


def test_without_observations_there_are_their_digests(
    play: Played, walk: Any, tmp_path: Path
) -> None:
    with Recorder() as recorder:
        play(walk(), recorder.capture(model="m", env="e", cameras=[]), seeds=[1])
        path = recorder.export(tmp_path / "b")

    reference = load(path).workloads[0].episodes[0].trajectory
    assert reference is not None
    with reference.load() as steps:
        assert steps.observations is None
        assert steps.observation(0) is None
        assert len(set(steps.digests)) == 6


TREES: list[Any] = [
    3,
    True,
    2.5,
    "text",
    np.int64(4),
    np.float32(0.5),
    np.arange(6, dtype=np.uint8).reshape(2, 3),
    np.zeros((0, 3), np.float32),
    {"a": np.ones(2, np.float32), "b": {"c": 1, "d/e": "x"}},
    (np.zeros(1), 2, "y"),
    [1, 2.0],
    {},
    (),
    None,
    {1: "a"},
    2**70,
    {"__array__": [1]},
    b"bytes",
    float("nan"),
]


def same(left: Any, right: Any) -> bool:
    kind: Any = left.__class__
    if kind is not right.__class__:
        return False
    if kind is np.ndarray:
        return (left.dtype, left.shape, left.tobytes()) == (
            right.dtype,
            right.shape,
            right.tobytes(),
        )
    if kind is dict:
        return set(left) == set(right) and all(same(left[key], right[key]) for key in left)
    if kind in (list, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right or left != left)


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_a_value_comes_back_in_its_own_type(tree: Any, tmp_path: Path) -> None:
    with written(tmp_path, [step(0, tree, tree), step(1, tree, tree)], [tree, tree]) as steps:
        assert same(tree, steps.action(1))
        assert same(tree, steps.observation(2))


@pytest.mark.parametrize("index", range(1, len(TREES)))
def test_values_whose_form_changes_come_back_as_well(index: int, tmp_path: Path) -> None:
    values = [TREES[index - 1], TREES[index - 1], TREES[index], TREES[index - 1]]
    events = [step(number, value, value) for number, value in enumerate(values)]
    with written(tmp_path, events, values) as steps:
        assert all(same(value, steps.action(at)) for at, value in enumerate(values))


def test_arrays_of_frameworks_come_back_as_numpy_arrays(tmp_path: Path) -> None:
    tensor = Tensor(np.arange(3, dtype=np.float32), (3,), "float32")
    events = [step(0, tensor, torch.arange(3, dtype=torch.float32))]

    with written(tmp_path, events, [tensor]) as steps:
        assert same(steps.action(0), np.arange(3, dtype=np.float32))
        assert same(steps.observations, np.arange(3, dtype=np.float32)[None].repeat(2, 0))


def test_stacked_values_are_a_tree_of_arrays(tmp_path: Path) -> None:
    events = [step(n, {"x": np.full(2, n)}, (n, "a")) for n in range(3)]
    seen = [{"x": np.full(2, n + 1)} for n in range(3)]

    with written(tmp_path, events, seen) as steps:
        assert steps.observations["x"].tolist() == [[0, 0], [1, 1], [2, 2], [3, 3]]
        numbers, texts = steps.actions
        assert numbers.tolist() == [0, 1, 2]
        assert texts == ["a", "a", "a"]


def test_infos_are_kept_by_key_and_missing_ones_are_none(tmp_path: Path) -> None:
    events = [step(0, 0, 0, info={"x": 1, "y": 2}), step(1, 0, 0, info={"x": 5})]

    with written(tmp_path, events, [0, 0], info_keys=("x", "y")) as steps:
        assert steps.infos["x"].tolist() == [1, 5]
        assert steps.infos["y"] == [2, None]


def test_the_same_steps_give_the_same_bytes(tmp_path: Path) -> None:
    contents: list[bytes] = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        written(folder, [step(n, np.full(3, n), n) for n in range(9)], list(range(9))).close()
        contents.append((folder / "t.npz").read_bytes())

    assert contents[0] == contents[1]


def test_what_does_not_fit_into_memory_goes_to_the_disk_and_comes_back(tmp_path: Path) -> None:
    frames = [np.full((200, 300, 3), n % 256, np.uint8) for n in range(20)]
    column = ValueColumn("x", tmp_path)
    tracemalloc.start()
    try:
        for frame in frames:
            column.add(frame)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    (member,) = column.members()
    assert len(member.spool) == 20 * frames[0].nbytes
    assert held <= KEPT + 2 * frames[0].nbytes
    assert all(map(same, frames, column.values()))
    column.add("odd")
    assert [type(value).__name__ for value in column.values()] == ["ndarray"] * 20 + ["str"]
    column.close()


@given(st.lists(st.binary(max_size=70_000), max_size=12), st.integers(1, 300_000))
def test_a_spool_gives_back_what_it_got_in_blocks_of_any_size(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], size: int
) -> None:
    spool = Spool(tmp_path_factory.getbasetemp())
    for part in parts:
        spool.write(part * 5)
    whole = b"".join(part * 5 for part in parts)

    blocks = list(spool.blocks(size))

    assert b"".join(blocks) == whole
    assert all(len(block) == size for block in blocks[:-1])
    spool.close()


json_trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text() | st.integers(), inner)
        | st.lists(inner).map(tuple)
    ),
    max_leaves=20,
)


@given(json_trees)
def test_any_tree_survives_json(tree: Any) -> None:
    assert same(tree, from_tagged(json.loads(json.dumps(to_tagged(tree), allow_nan=False))))


@pytest.mark.parametrize(
    "wrong",
    [{"__array__": 3}, {"__array__": ["|O", [1], "AAAA"]}, {"__scalar__": ["<i4", "!"]},
     {"__array__": ["<i4", [99], "AAAA"]}, {"__dict__": [1]}],
)  # fmt: skip
def test_tagged_json_that_nobody_wrote_is_a_typed_error(wrong: Any) -> None:
    with pytest.raises(BundleError, match="not a recorded value"):
        from_tagged(wrong)


def test_a_digest_is_the_same_for_every_framework_and_container() -> None:
    array = np.arange(4, dtype=np.float32)

    assert digest_of(array) == digest_of(torch.arange(4, dtype=torch.float32))
    assert digest_of(array) == digest_of(Tensor(array, (4,), "float32"))
    assert digest_of(array) == digest_of(array.astype(">f4"))
    assert digest_of({"a": 1, "b": array}) == digest_of({"b": array, "a": np.int64(1)})
    assert digest_of((1, 2)) == digest_of([np.int8(1), np.array(2)])
    distinct = [array, array + 1, array.reshape(2, 2), array.astype(np.float64), 1, 1.0, True, "1",
                None, b"1", [1], [[1]], {"a": 1}, {"b": 1}, -0.0, 0.0]  # fmt: skip
    assert len({digest_of(value) for value in distinct}) == len(distinct)


def npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def layout(**facts: Any) -> Any:
    known: dict[str, Any] = {"schema": "rlmesh.trajectory.v1", "steps": 1, "columns": {}}
    return np.frombuffer(json.dumps({**known, **facts}).encode(), np.uint8)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"not a zip", "no trajectory file"),
        (npz(x=np.zeros(1)), "no array 'layout'"),
        (npz(layout=layout(schema="other")), "of schema 'other'"),
        (npz(layout=np.frombuffer(b"{", np.uint8)), "no trajectory file"),
        (npz(layout=np.array([{"a": 1}], object)), "of a kind that nobody records"),
        (npz(layout=layout())[:-40], "no trajectory file"),
    ],
    ids=["text", "no layout", "foreign", "no json", "pickle", "truncated"],
)
def test_a_damaged_file_is_a_typed_error(content: bytes, told: str) -> None:
    with pytest.raises(BundleError, match=told):
        Trajectory(io.BytesIO(content), "t.npz")


def test_arrays_that_are_not_as_the_layout_says_are_typed_errors() -> None:
    columns = {"action": {"kind": "array", "member": "action"}}
    content = npz(layout=layout(steps=2, columns=columns), reward=np.zeros(1), action=np.zeros(0))

    with Trajectory(io.BytesIO(content), "t.npz") as steps:
        with pytest.raises(BundleError, match="odd 'reward'"):
            _ = steps.rewards
        with pytest.raises(BundleError, match="is damaged"):
            steps.action(1)
        with pytest.raises(BundleError, match="no array 'step_ms'"):
            _ = steps.step_ms


def test_a_header_that_claims_more_than_there_is_takes_no_memory() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        packed = io.BytesIO()
        np.save(packed, layout())
        archive.writestr("layout.npy", packed.getvalue())
        packed = io.BytesIO()
        facts = {"descr": "<f8", "fortran_order": False, "shape": (2**50,)}
        np.lib.format.write_array_header_1_0(packed, facts)
        archive.writestr("reward.npy", packed.getvalue() + b"12345678")

    with (
        Trajectory(io.BytesIO(buffer.getvalue()), "t.npz") as steps,
        pytest.raises(BundleError, match="claims 9007199254740992 bytes"),
    ):
        _ = steps.rewards


def test_parquet_has_a_row_for_each_step(play: Played, walk: Any, tmp_path: Path) -> None:
    parquet: Any = import_module("pyarrow.parquet")  # Any: it has no types
    with Recorder() as recorder:
        hooks = recorder.capture(
            model="m", env="e", cameras=[], parquet=True, observations=True, info_keys=["at"]
        )
        play(walk(), hooks, seeds=[1])
        path = recorder.export(tmp_path / "b")

    reference = load(path).workloads[0].episodes[0].trajectory
    assert reference is not None
    assert reference.parquet is not None
    table: Any = parquet.read_table(path / reference.parquet)
    with reference.load() as steps:
        assert table["step"].to_pylist() == [0, 1, 2, 3, 4]
        assert table["reward"].to_pylist() == steps.rewards.tolist()
        assert table["action"].to_pylist() == steps.actions.tolist()
        assert table["observation"].to_pylist() == steps.observations[:5].tolist()
        assert table["observation_digest"].to_pylist() == list(steps.digests[:5])
        assert table["info/at"].to_pylist() == [1, 2, 3, 4, 5]
        shapes = json.loads(table.schema.metadata[b"rlmesh.shapes"])
        assert shapes == {"observation": [2]}


def test_parquet_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)

    with pytest.raises(MissingDependencyError, match=r"rlmesh\[parquet\]"):
        Recorder().capture(model="m", env="e", parquet=True)


def test_what_has_no_form_in_parquet_costs_the_table_and_not_the_run(
    play: Played, walk: Any, tmp_path: Path
) -> None:
    with Recorder() as recorder:
        hooks = recorder.capture(model="m", env="e", cameras=[], parquet=True, info_keys=["odd"])
        env = walk(named={"odd": np.complex128(1j)})
        with pytest.warns(UserWarning, match="have no form in Parquet"):
            result = play(env, hooks, seeds=[1])
        path = recorder.export(tmp_path / "b")

    assert result.coverage.scored == 1
    reference = load(path).workloads[0].episodes[0].trajectory
    assert reference is not None
    assert reference.parquet is None
    with reference.load() as steps:
        assert steps.infos["odd"].tolist() == [1j] * 5


def test_keys_that_look_like_names_of_columns_keep_apart(tmp_path: Path) -> None:
    seen: list[Any] = [{"x": "ab", "x.ends": 7}, {"x": "cde", "x.ends": 8}]

    with written(tmp_path, [step(0, seen[0], 0)], seen[1:], observations=True) as steps:
        assert [steps.observation(at) for at in (0, 1)] == seen
