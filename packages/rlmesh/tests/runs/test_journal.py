import errno
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import rlmesh
from hypothesis import given, settings
from hypothesis import strategies as st
from rlcore import ConfigurationError, EnvironmentIdentity, JournalError
from rlmesh.numpy import Model
from rlmesh.runs.journal import Header, Journal, read_journal
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.results import EpisodeResult, RunResult

HEADER = Header(
    model="PPO",
    model_digest="sha256:77",
    environment=EnvironmentIdentity("CartPole-v1", 3, "sha256:12ab"),
    seeds=(10, 11, 12, 13),
    settings={"max_episode_steps": 100, "max_episode_seconds": None},
    package_versions={"rlmesh": "2.0.0a1", "numpy": "2.0.0"},
)


def episode(index: int, **facts: Any) -> EpisodeResult:  # Any: the fields' own types
    values: dict[str, Any] = {"reward": 0.1 * index, "steps": 5, **facts}
    return EpisodeResult(
        index=index, seed=10 + index, terminated=True, truncated=False, duration_s=0.25, **values
    )


def begun(path: Path, *episodes: EpisodeResult) -> None:
    with Journal.open(path, HEADER) as journal:
        for item in episodes:
            journal.append(item)


def test_what_was_appended_is_there_when_the_journal_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    begun(path, episode(2), episode(0, success=True))

    with Journal.open(path, HEADER) as journal:
        assert dict(journal.finished) == {0: episode(0, success=True), 2: episode(2)}
        journal.append(episode(1))

    assert read_journal(path) == (HEADER, (episode(0, success=True), episode(1), episode(2)))


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome.CANCELLED,
        Outcome.INFRA_ERROR,
        Outcome.TIMEOUT,
        Outcome.ENV_ERROR,
        Outcome.GRADER_ERROR,
    ],
)
def test_an_episode_without_a_score_is_played_again_and_its_last_record_counts(
    tmp_path: Path, outcome: Outcome
) -> None:
    path = tmp_path / "run.jsonl"
    begun(path, episode(0, outcome=outcome, error="gone"))

    with Journal.open(path, HEADER) as journal:
        assert dict(journal.finished) == {}
        journal.append(episode(0))
        assert dict(journal.finished) == {0: episode(0)}

    assert read_journal(path)[1] == (episode(0),)


def test_a_finished_episode_is_never_written_twice(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "run.jsonl", HEADER) as journal:
        journal.append(episode(0))
        with pytest.raises(ConfigurationError, match="episode 0 is in the journal"):
            journal.append(episode(0))


@pytest.mark.parametrize("stranger", [episode(4), replace(episode(1), seed=99)])
def test_an_episode_of_another_run_is_refused(tmp_path: Path, stranger: EpisodeResult) -> None:
    with (
        Journal.open(tmp_path / "run.jsonl", HEADER) as journal,
        pytest.raises(ConfigurationError, match="none of this run"),
    ):
        journal.append(stranger)


@pytest.mark.parametrize(
    ("other", "path", "text"),
    [
        ({"model": "DQN"}, "model", "model is 'PPO' there and 'DQN' here"),
        ({"model_digest": None}, "model_digest", "model_digest is 'sha256:77' there and None here"),
        ({"environment": None}, "environment", "and None here"),
        (
            {"environment": EnvironmentIdentity("CartPole-v1", 3, "sha256:ffff")},
            "environment.contract_digest",
            "environment.contract_digest is 'sha256:12ab' there and 'sha256:ffff' here",
        ),
        ({"seeds": (10, 11, 7, 8)}, "seeds[2]", r"seeds\[2\] is 12 there and 7 here"),
        ({"seeds": (10, 11)}, "len(seeds)", r"len\(seeds\) is 4 there and 2 here"),
        (
            {"settings": {"max_episode_steps": 50}},
            "settings.max_episode_steps",
            "settings.max_episode_steps is 100 there and 50 here",
        ),
    ],
)
def test_a_journal_of_another_run_is_refused_with_what_differs(
    tmp_path: Path, other: dict[str, Any], path: str, text: str
) -> None:
    file = tmp_path / "run.jsonl"
    begun(file, episode(0))
    before = file.read_bytes()

    with pytest.raises(JournalError, match=text) as caught:
        Journal.open(file, replace(HEADER, **other))

    assert caught.value.differences == (path,)
    assert caught.value.path == str(file)
    assert file.read_bytes() == before


def test_an_upgraded_package_is_told_and_does_not_stop_the_run(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    begun(path, episode(0))
    newer = replace(HEADER, package_versions={"rlmesh": "2.0.0a1", "numpy": "2.4.0"})

    with Journal.open(path, newer) as journal:
        assert journal.advisories == ("numpy was 2.0.0 when the journal was begun, and is 2.4.0",)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_wherever_the_file_was_torn_the_whole_lines_stay_and_the_run_can_go_on(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("torn") / "run.jsonl"
    begun(path, episode(0), episode(1, outcome=Outcome.ENV_ERROR, error='a "quoted"\nline'))
    content = path.read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut])
    whole = max(content[:cut].count(b"\n") - 1, 0)

    with Journal.open(path, HEADER) as journal:
        assert list(journal.finished) == [0][:whole]
        for index in range(min(whole, 1), 4):
            journal.append(episode(index))

    assert [item.index for item in read_journal(path)[1]] == [0, 1, 2, 3]


@pytest.mark.parametrize("content", [b"precious", b"precious\n", b'{"schema": "other"}\n'])
def test_a_file_that_is_no_journal_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)

    with pytest.raises(JournalError, match="is not the journal of a run"):
        Journal.open(path, HEADER)

    assert path.read_bytes() == content


def test_a_broken_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    begun(path, episode(0), episode(1))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b'{"episode": {"ind\n' + lines[2])

    with pytest.raises(JournalError, match="line 2 is broken"):
        Journal.open(path, HEADER)


def test_a_journal_in_use_is_refused_until_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Journal.open(path, HEADER), pytest.raises(JournalError, match="in use by another run"):
        Journal.open(path, HEADER)
    Journal.open(path, HEADER).close()


def test_a_journal_in_use_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Journal.open(path, HEADER) as journal:
        journal.append(episode(0))
        assert read_journal(path) == (HEADER, (episode(0),))


def test_a_full_disk_is_a_typed_error_and_leaves_what_was_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    # A limit on the size of files makes the kernel write a part of a line and then refuse.
    script = f"""
import resource, signal
from pathlib import Path
from rlcore import JournalError
from rlmesh.runs.journal import Header, Journal
from rlmesh.runs.results import EpisodeResult

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
header = Header("m", None, None, tuple(range(1000)))
with Journal.open({str(path)!r}, header) as journal:
    size = Path({str(path)!r}).stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 1000, resource.RLIM_INFINITY))
    done = 0
    try:
        for index in range(1000):
            journal.append(EpisodeResult(index, index, 1, 1.0, True, False))
            done += 1
    except JournalError as error:
        print(done, error)
"""
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=50, check=True
    )

    count, _, text = answer.stdout.partition(" ")
    assert text.startswith(f"the journal {str(path)!r} cannot be written: File too large")
    assert 1 <= int(count) < 10
    assert path.read_bytes().endswith(b"}\n")
    assert len(read_journal(path)[1]) == int(count)


def test_where_the_disk_is_full_the_error_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.jsonl"
    with Journal.open(path, HEADER) as journal:
        journal.append(episode(0))
        before = path.read_bytes()

        def full(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(JournalError, match="cannot be written: No space left") as caught:
            journal.append(episode(1))
        assert list(journal.finished) == [0]

    assert caught.value.hint == "make room on the disk, and run again with the same journal"
    assert path.read_bytes() == before


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/full"])
def test_what_is_no_file_is_no_journal(path: str) -> None:
    with pytest.raises(JournalError, match="it is no file"):
        Journal.open(path, HEADER)
    with pytest.raises(JournalError, match="it is no file"):
        read_journal(path)


def test_a_folder_that_is_not_there_is_a_typed_error(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="cannot be opened: No such file"):
        Journal.open(tmp_path / "missing" / "run.jsonl", HEADER)
    with pytest.raises(JournalError, match="cannot be read: No such file"):
        read_journal(tmp_path / "missing.jsonl")


def test_a_closed_journal_takes_nothing_more(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path / "run.jsonl", HEADER)
    journal.close()
    journal.close()

    with pytest.raises(JournalError, match="is closed"):
        journal.append(episode(0))


def test_the_lock_ends_with_the_process_that_held_it(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    script = (
        "import sys; from rlmesh.runs.journal import Header, Journal\n"
        f"journal = Journal.open({str(path)!r}, Header('m', None, None, (1,)))\n"
        "print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(JournalError, match="in use"):
            Journal.open(path, Header("m", None, None, (1,)))
        holder.kill()
        holder.wait()

    Journal.open(path, Header("m", None, None, (1,))).close()


def test_a_system_without_file_locks_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(JournalError, match="needs file locks"):
        Journal.open(tmp_path / "run.jsonl", HEADER)


def test_each_line_is_json_that_other_tools_read(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    begun(path, episode(1, reward=float("inf")))

    first, second = path.read_text().splitlines()
    assert json.loads(first)["schema"] == "rlmesh.journal.v1"
    assert json.loads(second)["episode"]["reward"] == "inf"
    assert path.stat().st_mode & 0o111 == 0


def test_a_disk_that_fills_up_during_a_run_costs_none_of_its_episodes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    corridor: type[Any],  # Any: an environment
) -> None:
    path = tmp_path / "run.jsonl"
    sync, calls = os.fsync, [0]

    def fills_up(descriptor: int) -> None:
        calls[0] += 1
        if calls[0] == 6:  # after three for the beginning, and one for each of two episodes
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(descriptor)

    def play() -> RunResult:
        model = Model(lambda observation: 1, name="right")
        return rlmesh.run(model, corridor(), seeds=range(4), journal=path)

    monkeypatch.setattr(os, "fsync", fills_up)
    with pytest.raises(JournalError, match="No space left") as caught:
        play()

    partial = caught.value.partial
    assert isinstance(partial, RunResult)
    assert [item.reward for item in partial.scored_episodes][:2] == [3.0, 3.0]
    assert len(read_journal(path)[1]) == 2
    assert play().coverage == (4, 4, 0)
    assert len(read_journal(path)[1]) == 4


def test_a_journal_is_opened_before_an_episode_is_played(
    tmp_path: Path, corridor: type[Any]
) -> None:
    path = tmp_path / "run.jsonl"
    env = corridor()
    begun(path)

    with pytest.raises(JournalError, match="belongs to another run"):
        rlmesh.run(Model(lambda observation: 1), env, seeds=range(4), journal=path)

    assert env.seeds == []


@pytest.mark.parametrize(
    "line",
    [
        b'{"episode": ' + b"[" * 100_000,
        json.dumps({"episode": {**episode(1).to_dict(), "index": "1"}}).encode(),
        json.dumps({"episode": {**episode(1).to_dict(), "reward": None}}).encode(),
        json.dumps({"episode": episode(0).to_dict()}).encode(),
        json.dumps({"episode": episode(9).to_dict()}).encode(),
    ],
    ids=["nested", "text for a number", "score without reward", "twice", "foreign"],
)
def test_a_line_that_no_run_wrote_is_a_journal_error(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "run.jsonl"
    begun(path, episode(0))
    path.write_bytes(path.read_bytes() + line + b"\n")

    with pytest.raises(JournalError, match="is not the journal of a run"):
        Journal.open(path, HEADER)


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_what_names_no_file_is_no_journal(path: str) -> None:
    with pytest.raises(ConfigurationError, match="journal is"):
        rlmesh.run(Model(lambda observation: 0), "CartPole-v1", journal=path)
