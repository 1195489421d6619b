import json
import random
import string
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlcore import ConfigurationError, NotFoundError, RolloutsUnreadable
from rleaas.evaluation.rollouts import (
    EVENT_TYPES,
    RolloutReader,
    RolloutRecord,
    RolloutWriter,
    StepRecord,
    TimelineEvent,
    check_rollouts,
)
from rleaas.evaluation.rollouts.table import arrow, parquet, schema

texts = st.text(st.characters(codec="utf-8"), max_size=8)
numbers = st.floats(allow_nan=False, allow_infinity=False)
whole = st.integers(-(2**63), 2**63 - 1)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, json_values, max_size=3)
events = st.builds(
    TimelineEvent,
    timestamp_ms=st.integers(0, 2**53),
    event_type=st.sampled_from(EVENT_TYPES),
    content=st.none() | texts,
    tool_name=st.none() | texts,
    tool_args=st.none() | objects,
)
steps = st.builds(
    StepRecord,
    index=st.integers(0, 10**6),
    tool=st.none() | texts,
    action=json_values,
    arguments=objects,
    result=json_values,
    ok=st.booleans(),
    reward=numbers,
    reward_breakdown=st.dictionaries(texts, numbers, max_size=2),
    observation=json_values,
    info=objects,
    timeline=st.lists(events, max_size=3).map(tuple),
)
records = st.builds(
    RolloutRecord,
    id=texts,
    scenario_id=st.none() | texts,
    scenario_version=st.none() | whole,
    seed=st.none() | whole,
    repetition=st.integers(0, 100),
    index=st.integers(0, 10**9),
    outcome=st.sampled_from(["success", "failure", "grader_error"]),
    success=st.none() | st.booleans(),
    reward=st.none() | numbers,
    truncated=st.booleans(),
    steps=st.lists(steps, max_size=4).map(tuple),
    state=json_values,
    verdicts=st.lists(objects, max_size=2).map(tuple),
    score=st.none() | numbers,
    error=st.none() | texts,
    duration_s=numbers,
)


def written(path: Path, made: list[RolloutRecord]) -> Path:
    with RolloutWriter(path) as writer:
        for record in made:
            writer.add(record)
    return path


def episode(number: int, length: int = 3) -> RolloutRecord:
    return RolloutRecord(
        id=f"ro_{number}",
        index=number,
        steps=tuple(StepRecord(index=one, reward=number / 8) for one in range(length)),
    )


@given(made=st.lists(records, max_size=5, unique_by=lambda record: record.id))
@settings(max_examples=60, deadline=None)
def test_what_is_written_is_read_again_whatever_the_environment_put_into_it(
    made: list[RolloutRecord], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = written(tmp_path_factory.mktemp("rollouts") / "file.parquet", made)

    with RolloutReader(path) as reader:
        assert list(reader) == made
        assert len(reader) == len(made)
        assert [reader.one(record.id) for record in made] == made
    assert [RolloutRecord.from_json(json.loads(json.dumps(one.to_json()))) for one in made] == made
    assert check_rollouts(path) == (len(made), sum(len(record.steps) for record in made))


def test_pages_come_from_the_groups_that_they_are_in(tmp_path: Path) -> None:
    path = written(tmp_path / "file", [episode(number) for number in range(700)])

    with RolloutReader(path) as reader:
        assert [one.id for one in reader.page(250, 10)] == [f"ro_{n}" for n in range(250, 260)]
        assert reader.page(699, 50) == (episode(699),)
        assert reader.page(700, 50) == ()
        assert reader.page(300, 1, steps=False) == (replace(episode(300), steps=()),)
        assert reader.one("ro_511") == episode(511)
        assert parquet().ParquetFile(path).metadata.num_row_groups == 3
        with pytest.raises(NotFoundError) as missing:
            reader.one("ro_700")
    assert missing.value.code == "rollout_not_found"


def test_an_interrupted_writer_leaves_a_whole_file_of_what_was_added(tmp_path: Path) -> None:
    path = tmp_path / "file"

    def play() -> None:
        with RolloutWriter(path) as writer:
            writer.add(episode(0))
            assert not path.exists()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play()

    assert check_rollouts(path) == (1, 3)
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_an_episode_that_cannot_be_kept_does_not_take_others_with_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with RolloutWriter(path) as writer:
        writer.add(episode(0))
        for refused in (
            replace(episode(1), state={"x": object()}),
            replace(episode(1), state=float("nan")),
            replace(episode(1), seed=2**63),
        ):
            with pytest.raises(ConfigurationError) as error:
                writer.add(refused)
            assert error.value.code == "invalid_rollout"
        with pytest.raises(ConfigurationError) as repeated:
            writer.add(episode(0))
        writer.add(episode(2))

    assert repeated.value.code == "rollout_repeated"
    with RolloutReader(path) as reader:
        assert list(reader.ids()) == ["ro_0", "ro_2"]


def test_a_text_with_half_a_surrogate_is_kept_as_its_escape(tmp_path: Path) -> None:
    made = RolloutRecord(id="a", error="bad \ud800", state="bad \ud800")

    with RolloutReader(written(tmp_path / "file", [made])) as reader:
        assert reader.one("a") == replace(made, error="bad \\ud800")


def test_a_file_that_is_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    whole_file = written(tmp_path / "file", [episode(one) for one in range(20)]).read_bytes()
    cut = tmp_path / "cut"

    for size in [0, 1, 8, 12, len(whole_file) // 2, len(whole_file) - 1]:
        cut.write_bytes(whole_file[:size])
        with pytest.raises(RolloutsUnreadable):
            check_rollouts(cut, name="theirs")


def test_an_altered_byte_is_refused_or_changes_nothing_that_is_read(tmp_path: Path) -> None:
    made = [episode(one) for one in range(20)]
    original = written(tmp_path / "file", made).read_bytes()
    altered = tmp_path / "altered"
    chosen = random.Random(7).sample(range(len(original)), 150)
    refused = 0

    for place in chosen:
        damaged = bytearray(original)
        damaged[place] ^= 0x55
        altered.write_bytes(damaged)
        try:
            check_rollouts(altered)
        except RolloutsUnreadable:
            refused += 1

    # The rest is in the footer's names and statistics, which nothing depends on.
    assert refused > 60


@pytest.mark.parametrize("kind", ["other columns", "no release", "other release", "no parquet"])
def test_a_file_of_somebody_else_is_refused(kind: str, tmp_path: Path) -> None:
    pa = arrow()
    path = tmp_path / "file"
    made = {
        "other columns": pa.table({"id": ["a"]}),
        "no release": schema().remove_metadata().empty_table(),
        "other release": schema().with_metadata({b"rleaas.rollouts": b"2"}).empty_table(),
    }
    if kind in made:
        parquet().write_table(made[kind], path)
    else:
        path.write_text(string.ascii_letters)

    with pytest.raises(RolloutsUnreadable):
        RolloutReader(path)


def test_a_file_that_would_be_large_in_memory_is_refused_before_it_is(tmp_path: Path) -> None:
    pa = arrow()
    path = tmp_path / "file"
    row: dict[str, object] = {
        "id": "a" * 1000,
        "repetition": 0,
        "index": 0,
        "outcome": "x",
        "truncated": False,
        "duration_s": 0.0,
        "steps": [],
    }
    table = pa.Table.from_pylist([row] * 2000, schema=schema())
    parquet().write_table(table, path, use_dictionary=["id"], compression="zstd")
    assert path.stat().st_size < 20_000

    with pytest.raises(RolloutsUnreadable, match="dictionary"):
        RolloutReader(path)


@pytest.mark.parametrize(
    ("column", "value"),
    [("state", "{"), ("state", "NaN"), ("verdicts", "{}"), ("state", "[" * 100_000)],
)
def test_a_cell_that_is_no_json_is_refused(column: str, value: str, tmp_path: Path) -> None:
    path = written(tmp_path / "file", [episode(0)])
    table = parquet().read_table(path)
    row = {**table.to_pylist()[0], column: value}
    changed = arrow().Table.from_pylist([row], schema=schema())
    parquet().write_table(changed, path, use_dictionary=False)

    with pytest.raises(RolloutsUnreadable):
        check_rollouts(path)


def test_two_episodes_of_one_id_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "file", [episode(0), episode(1)])
    table = parquet().read_table(path)
    rows = [{**row, "id": "same"} for row in table.to_pylist()]
    parquet().write_table(
        arrow().Table.from_pylist(rows, schema=schema()), path, use_dictionary=False
    )

    with pytest.raises(RolloutsUnreadable, match="twice"):
        check_rollouts(path)


def test_what_is_no_record_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match=r"is no RolloutRecord: .*'colour'"):
        RolloutRecord.from_json({"id": "a", "colour": "blue"})
    with pytest.raises(ConfigurationError, match="is no StepRecord"):
        RolloutRecord.from_json({"id": "a", "steps": [{"step": 0, "tols": 3}]})
