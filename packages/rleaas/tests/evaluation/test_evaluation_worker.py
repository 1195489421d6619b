"""The worker's own part of an evaluation, on a world in this process."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from rlcore import ConfigurationError, Error, EvaluationFailed, IdentityError, ModelFailed
from rleaas.evaluation import remote_chat, worker
from rleaas.evaluation.rollouts import RolloutReader
from rleaas.models import EvaluationReport
from rleaas.server.agent_models import AgentModels
from rleaas.server.outbound import Outbound
from rleaas.server.rules import library
from rleaas.sims import make
from rleaas.training.remote_sessions import RemoteSessions
from rleaas.training.reporter import Reporter
from rleaas.training.stop_switch import StopSwitch
from rleaas.training.worker_process import Ending
from rlmesh.specs import contract_of

from ..llm.model_server import (  # noqa: TID252 - plays the model
    ModelServer,
    Request,
    Said,
    model_server,
)

SUITE = library.suite("suite_eval_01")
assert SUITE is not None
SCENARIOS = [library.as_played(one) for one in SUITE.scenarios[:4]]


class Line:
    """Stands for the line to a server: hears what a worker says, and keeps what it stores."""

    def __init__(self, tmp_path: Path, **assignment: object) -> None:
        self.tmp_path = tmp_path
        self.said: list[tuple[str, Mapping[str, object]]] = []
        self.stored: Path | None = None
        self.cancel_requested = threading.Event()
        contract = contract_of(make("FinSim"))
        self._assignment = {
            "id": "eval_1",
            "environment": {"name": "Fin", "version": 1, "contract_digest": contract.digest},
            "agent": "random",
            "seeds": [0, 1],
            "scenarios": {"suite_id": "s", "suite_version": 3, "scenarios": SCENARIOS},
            "contract": contract.to_dict(),
            "journal_directory": str(tmp_path / "journals"),
            **assignment,
        }

    def assignment(self) -> Mapping[str, object]:
        return self._assignment

    def report(self, kind: str, data: Mapping[str, object]) -> None:
        self.said.append((kind, data))

    def flush(self) -> None: ...

    def upload_rollouts(self, name: str, path: Path) -> None:
        self.stored = self.tmp_path / f"{name}.parquet"
        shutil.copy(path, self.stored)

    def download_rollouts(self, sha256: str, path: Path) -> None:
        shutil.copy(self.tmp_path / sha256, path)

    def episodes(self) -> list[Mapping[str, object]]:
        return [data for kind, data in self.said if kind == "episode"]


class Sessions:
    """Opens worlds here, and counts the episodes that are played on them."""

    def __init__(self) -> None:
        self.resets = 0

    def open(self, _session: int) -> object:
        env = make("FinSim")
        reset = env.reset

        def counted(**given: Any) -> object:
            self.resets += 1
            return reset(**given)

        cast("Any", env).reset = counted
        return env


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> Sessions:
    found = Sessions()
    monkeypatch.setattr(RemoteSessions, "__call__", found.open)
    return found


def evaluated(line: Line, switch: StopSwitch | None = None) -> Ending:
    return worker.evaluate_checkpoint(cast("Reporter", line), switch or StopSwitch())


def results(ending: Ending) -> EvaluationReport:
    told = cast("dict[str, object]", ending.data["results"])
    return EvaluationReport.model_validate({"id": "e", "status": "completed", **told})


def verifiers(*definitions: dict[str, object], **weights: float) -> dict[str, object]:
    everybody = {"weights": weights, "definitions": list(definitions)}
    known = {one: {"name": one, "version": 4} for one in weights}
    return {"source": "request", "everybody": everybody, "of_scenarios": {}, "known": known}


RULE: dict[str, object] = {
    "id": "aml",
    "type": "rule_based",
    "version": 4,
    "logic": {"conditions": ["'run_aml_check' in trajectory.tool_calls"]},
}


def test_each_scenario_is_played_with_each_seed_and_the_scenario_decides(
    sessions: Sessions, tmp_path: Path
) -> None:
    line = Line(tmp_path)
    report = results(evaluated(line))

    assert (report.asked, report.scored, report.failed) == (8, 8, 0)
    assert sessions.resets == 8
    assert report.score_kind == "success"
    passes = [one["passed"] for one in line.episodes()]
    assert report.overall_score == sum(map(bool, passes)) / 8
    assert report.pass_rate == report.success_rate == report.overall_score
    assert report.pass_interval is not None
    assert [one["scenario_id"] for one in report.scenario_results] == [s["id"] for s in SCENARIOS]
    assert sum(cast("int", one["episodes"]) for one in report.tier_results) == 8
    assert report.provenance["suite"] == {"id": "s", "version": 3}
    assert cast("dict[str, Any]", report.costs)["steps"] > 0
    assert line.stored is not None
    with RolloutReader(line.stored) as reader:
        kept = list(reader)
    assert [one.index for one in kept] == list(range(8))
    assert {one.seed for one in kept} == {0, 1}


def test_verifiers_judge_what_was_played_and_the_report_names_their_versions(
    sessions: Sessions, tmp_path: Path
) -> None:
    report = results(evaluated(Line(tmp_path, verifiers=verifiers(RULE, aml=1.0))))

    assert report.score_kind == "verifiers"
    told = cast("dict[str, Any]", report.verifier_breakdown["aml"])
    assert (told["version"], told["judged"], told["errors"]) == (4, 8, 0)
    assert told["mean_score"] == report.overall_score
    assert report.provenance["verifiers"] == {"aml": 4}


def test_what_another_attempt_has_played_is_not_played_again(
    sessions: Sessions, tmp_path: Path
) -> None:
    first = Line(tmp_path)
    switch = StopSwitch()
    plain = first.report

    def until_three(kind: str, data: Mapping[str, object]) -> None:
        plain(kind, data)
        if len(first.episodes()) == 3:
            switch.request("a kill")

    cast("Any", first).report = until_three
    assert evaluated(first, switch).stopped
    played = sessions.resets

    second = Line(tmp_path, attempt=2)
    report = results(evaluated(second))

    assert (report.asked, report.scored) == (8, 8)
    finished = len([one for one in first.episodes() if one["outcome"] != "cancelled"])
    assert sessions.resets - played == 8 - finished
    again = [one["index"] for one in second.episodes() if one.get("again")]
    assert again == list(range(finished))
    assert not (tmp_path / "journals" / "eval_1").exists()


def test_several_workers_play_the_same_as_one(sessions: Sessions, tmp_path: Path) -> None:
    one = Line(tmp_path / "1")
    several = Line(tmp_path / "2", num_workers=3)
    for line in (one, several):
        line.tmp_path.mkdir()
        evaluated(line)

    def said(line: Line) -> list[tuple[object, ...]]:
        names = ("index", "scenario_id", "seed", "steps", "reward", "outcome")
        return sorted(tuple(episode[name] for name in names) for episode in line.episodes())

    assert said(one) == said(several)


def test_stored_rollouts_are_judged_again_without_a_step(
    sessions: Sessions, tmp_path: Path
) -> None:
    line = Line(tmp_path)
    evaluated(line)
    played = sessions.resets
    again = Line(
        tmp_path,
        id="eval_2",
        source_evaluation_id="eval_1",
        source_rollouts=["rollouts.parquet"],
        verifiers=verifiers(RULE, aml=1.0),
    )
    report = results(evaluated(again))

    assert sessions.resets == played
    assert (report.asked, report.scored, report.score_kind) == (8, 8, "verifiers")
    assert [one["reward"] for one in again.episodes()] == [one["reward"] for one in line.episodes()]
    fresh = Line(tmp_path, verifiers=verifiers(RULE, aml=1.0))
    assert results(evaluated(fresh)).overall_score == report.overall_score


def test_an_environment_with_other_spaces_than_the_checkpoints_is_refused(
    sessions: Sessions, tmp_path: Path
) -> None:
    trained = {"action_space": {"kind": "discrete", "details": {"n": 2}}}
    with pytest.raises(IdentityError) as caught:
        evaluated(Line(tmp_path, trained_contract=trained))
    assert caught.value.code == "contract_changed"
    assert sessions.resets == 0


def test_without_any_score_the_evaluation_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Broken(Sessions):
        def open(self, _session: int) -> object:
            env = super().open(_session)

            def broken(**_: object) -> object:
                raise RuntimeError("the bank is closed")

            cast("Any", env).reset = broken
            return env

    found = Broken()
    monkeypatch.setattr(RemoteSessions, "__call__", found.open)
    line = Line(tmp_path, seeds=[0], scenarios={"scenarios": SCENARIOS[:1]})

    with pytest.raises(EvaluationFailed, match="the bank is closed"):
        evaluated(line)
    assert [one["outcome"] for one in line.episodes()] == ["env_error"]
    assert line.episodes()[0]["score"] is None


def world_of(**config: object) -> dict[str, object]:
    return {"world": {"vertical": "FinSim", "config": config}}


def test_the_expert_plays_each_plans_own_scenario(sessions: Sessions, tmp_path: Path) -> None:
    line = Line(tmp_path, agent="expert", repetitions=2, **world_of())
    report = results(evaluated(line))

    assert (report.asked, report.scored, report.overall_score) == (16, 16, 1.0)
    assert report.provenance["agent"] == "expert"
    assert {one["seed"] for one in line.episodes()} == {0, 1}


def test_the_expert_goes_on_where_another_attempt_ended(sessions: Sessions, tmp_path: Path) -> None:
    first, switch = Line(tmp_path, agent="expert", **world_of()), StopSwitch()
    plain = first.report

    def until_three(kind: str, data: Mapping[str, object]) -> None:
        plain(kind, data)
        if len(first.episodes()) == 3:
            switch.request("a kill")

    cast("Any", first).report = until_three
    assert evaluated(first, switch).stopped
    report = results(evaluated(Line(tmp_path, attempt=2, agent="expert", **world_of())))

    assert (report.scored, report.overall_score) == (8, 1.0)


def test_there_is_no_expert_where_there_is_no_world(sessions: Sessions, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        evaluated(Line(tmp_path, agent="expert"))
    assert caught.value.code == "agent_needs_world"


class Desks(Sessions):
    """Opens the text face."""

    def open(self, _session: int) -> object:
        return make("FinSim", "text")


@pytest.fixture
def desks(monkeypatch: pytest.MonkeyPatch) -> Desks:
    found = Desks()
    monkeypatch.setattr(RemoteSessions, "__call__", found.open)
    return found


@contextmanager
def asked_through_the_server(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[Request], Said] | Said
) -> Generator[tuple[dict[str, object], ModelServer]]:
    """What an evaluation's assignment says of a model that answers so, over real HTTP."""
    with model_server(answer) as server:
        models = AgentModels(None, Outbound({"127.0.0.1"}))
        agent = models.settled(
            {"kind": "llm", "base_url": server.openai, "model": "tiny", "timeout_seconds": 0.5}
        )

        def ask(path: str, body: dict[str, Any], *, seconds: float) -> dict[str, Any]:
            try:
                said = models.complete(agent, body["messages"], body["tools"])
            except ModelFailed as error:
                return {"error": {"reason": error.reason, "detail": error.detail}}
            calls = [
                {"id": one.id, "name": one.name, "arguments": one.arguments}
                for one in said.tool_calls
            ]
            tokens = {"input_tokens": said.input_tokens, "output_tokens": said.output_tokens}
            return {"text": said.text, "tool_calls": calls, **tokens}

        monkeypatch.setattr(remote_chat, "ask_server", ask)
        contract = contract_of(make("FinSim", "text")).to_dict()
        yield (
            {
                "agent": agent,
                "contract": contract,
                "complete_at": "/api/worker/evaluation/eval_1/complete",
                "seeds": [0],
            },
            server,
        )


@pytest.mark.parametrize(
    "said",
    [
        Said("I would rather talk about it."),
        Said("é" * 50_000),
        Said(calls=(("no_such_tool", {}),)),
        Said(calls=(("get_transfer", {"transfer_id": "x" * 50_000}),)),
    ],
)
def test_a_language_model_that_does_not_act_fails_its_episodes_and_is_charged(
    desks: Desks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    with asked_through_the_server(monkeypatch, said) as (told, server):
        report = results(evaluated(Line(tmp_path, **told)))

    assert [one["pass_rate"] for one in report.scenario_results] == [0.0] * 4
    assert (report.scored, report.overall_score) == (4, 0.0)
    asked = len(server.requests)
    assert cast("dict[str, Any]", report.costs)["agent"] == {
        "model": cast("dict[str, Any]", told["agent"])["identity"],
        "calls": asked,
        "input_tokens": 11 * asked,
        "output_tokens": 3 * asked,
    }
    assert cast("dict[str, Any]", report.provenance["agent"])["model"] == "tiny"


def test_an_answer_that_is_late_is_an_episode_without_a_score(
    desks: Desks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late: list[Request] = []

    def second_is_late(request: Request) -> Said:
        late.append(request)
        return Said("Well.", drips=len(late) == 1)

    with asked_through_the_server(monkeypatch, second_is_late) as (told, _):
        line = Line(tmp_path, **told)
        report = results(evaluated(line))

    assert [one["outcome"] for one in line.episodes()] == ["timeout", *["failure"] * 3]
    assert line.episodes()[0]["score"] is None
    assert (report.asked, report.scored, report.failed) == (4, 3, 1)


def test_an_endpoint_that_is_away_ends_the_evaluation_without_a_number(
    desks: Desks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with asked_through_the_server(monkeypatch, Said("no key", status=401)) as (told, _):
        line = Line(tmp_path, **told)
        with pytest.raises(Error, match="no key"):
            evaluated(line)

    assert {one["outcome"] for one in line.episodes()} == {"infra_error"}
    assert {one["score"] for one in line.episodes()} == {None}


def test_what_a_language_model_cost_before_a_kill_counts(
    desks: Desks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with asked_through_the_server(monkeypatch, Said("Well.")) as (told, server):
        first, switch = Line(tmp_path, **told), StopSwitch()
        plain = first.report

        def until_two(kind: str, data: Mapping[str, object]) -> None:
            plain(kind, data)
            if len(first.episodes()) == 2:
                switch.request("a kill")

        cast("Any", first).report = until_two
        assert evaluated(first, switch).stopped
        report = results(evaluated(Line(tmp_path, attempt=2, **told)))

    costs = cast("dict[str, Any]", report.costs)["agent"]
    assert costs["calls"] == len(server.requests)
