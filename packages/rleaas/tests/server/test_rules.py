import math
from typing import cast

import pytest
from rlcore import ConfigurationError, contract_digest
from rleaas.server.rules import json_values
from rleaas.server.rules.lifecycle import JobState, ReportType, after_report
from rleaas.server.rules.names import environment_id, name_problem, split_version
from rleaas.server.rules.requests import evaluation_seeds, training_config
from rleaas.server.rules.sources import SourceKind, SourceProblem, parse_source

RUNNING = JobState("running", 40, {"current_episode": 4})


@pytest.mark.parametrize(
    ("reference", "read"), [("A@3", ("A", 3)), ("A", ("A", None)), ("A@x", ("A@x", None))]
)
def test_a_reference_may_pin_a_version(reference: str, read: tuple[str, int | None]) -> None:
    assert split_version(reference) == read


def test_only_digits_are_an_id() -> None:
    assert [environment_id(text) for text in ("12", "1a", "")] == [12, None, None]


def test_a_name_of_a_hundred_characters_is_the_longest() -> None:
    assert name_problem("a" * 100) is None
    assert name_problem("a" * 101) is not None


@pytest.mark.parametrize("text", [None, "", "custom", " custom "])
def test_the_published_default_is_no_source(text: str | None) -> None:
    assert parse_source(text) is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("gym://CartPole-v1", SourceKind.HOSTED),
        ("python://a.b:c", SourceKind.HOSTED),
        ("tcp://h:1", SourceKind.SERVED_ELSEWHERE),
        ("unix:///tmp/x", SourceKind.SERVED_ELSEWHERE),
    ],
)
def test_a_source_says_who_serves_it(text: str, kind: SourceKind) -> None:
    source = parse_source(text)

    assert source is not None
    assert (source.text, source.kind) == (text, kind)


@pytest.mark.parametrize("text", ["x", "http://h", "python://m", "gym://"])
def test_anything_else_is_a_problem_that_names_what_would_do(text: str) -> None:
    with pytest.raises(SourceProblem, match="python://module:attr"):
        parse_source(text)


@pytest.mark.parametrize(
    ("kind", "data", "status", "progress"),
    [
        ("progress", {"episode": 6}, "running", 60),
        ("metric", {"episode": 3}, "running", 40),
        ("metric", {"episode": 10}, "running", 99),
        ("progress", {"progress": 75.5}, "running", 75),
        ("completed", {}, "completed", 100),
        ("cancelled", {}, "cancelled", 40),
        ("failed", {"error": "x"}, "failed", 40),
        ("heartbeat", {}, "running", 40),
        ("started", {}, "running", 40),
    ],
)
def test_a_report_moves_a_job_forward_and_never_back(
    kind: ReportType, data: dict[str, object], status: str, progress: int
) -> None:
    after = after_report(RUNNING, kind, data, 10)

    assert (after.status, after.progress) == (status, progress)


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled", "awaiting_human_eval"])
def test_nothing_changes_a_job_that_has_ended(end: str) -> None:
    ended = JobState(end, 40)

    assert after_report(ended, "completed", {"results": {"avg_reward": 1}}, 10) is ended


def test_results_keep_what_a_later_report_does_not_say() -> None:
    first = after_report(RUNNING, "metric", {"episode": 5, "avg_reward": 2.0, "loss": 1}, 10)
    second = after_report(first, "metric", {"episode": 6, "avg_reward": None}, 10)

    assert second.results == {"current_episode": 6, "avg_reward": 2.0}


def test_an_evaluation_counts_its_episodes() -> None:
    state = JobState("running")
    for _ in range(3):
        state = after_report(state, "episode", {}, 4)

    assert (state.progress, state.results["episodes_done"]) == (75, 3)


def test_a_failure_without_a_reason_says_so() -> None:
    assert after_report(RUNNING, "failed", {}, 10).error == "the worker gave no reason"


def test_seeds_are_counted_from_the_base_when_they_are_not_listed() -> None:
    assert evaluation_seeds(None, 3, 10) == [10, 11, 12]
    assert evaluation_seeds([5, 4], None, 0) == [5, 4]
    assert len(evaluation_seeds(None, None, 0)) == 20


def test_the_seed_beside_the_config_is_the_configs() -> None:
    assert training_config("ppo", 5, 6, {}, 7).effective_seed == 7
    assert training_config("PPO", 5, 6, {"seed": 8}, None).effective_seed == 8
    with pytest.raises(ConfigurationError, match="contradicts"):
        training_config("PPO", 5, 6, {"seed": 8}, 7)


@pytest.mark.parametrize("value", [math.nan, math.inf, "\ud800", [[math.nan]], {"\udfff": 1}])
def test_what_json_cannot_carry_is_found(value: object) -> None:
    assert json_values.problem_with({"a": value})


def test_a_value_without_an_end_is_too_deep() -> None:
    value: list[object] = []
    for _ in range(100):
        value = [value]

    assert "deeper" in (json_values.problem_with(value) or "")


def test_a_contract_in_plain_values_has_the_same_digest() -> None:
    contract = {"low": (-math.inf, 1.5), "raw": b"\x01", "n": 3, "nan": math.nan, "x": None}
    plain = cast("dict[str, object]", json_values.plain(contract))

    assert json_values.problem_with(plain) is None
    assert contract_digest(plain) == contract_digest(contract)


def test_booleans_are_not_numbers() -> None:
    assert json_values.integer(True) is None
    assert json_values.number(True) is None
    assert json_values.integer(3.0) == 3
    assert json_values.number(math.nan) is None
    assert json_values.text("") is None
