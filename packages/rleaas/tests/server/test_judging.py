"""Judges that the server asks: a language model, and functions in processes of their own."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path

import pytest
from rlcore import ConfigurationError, GraderError, Secret
from rleaas.llm import ModelEndpoint
from rleaas.server.function_process import FunctionProcess
from rleaas.server.judging import Judging
from rleaas.server.settings import judge_endpoint
from rleaas.verify import Definition, FailurePolicy, Trajectory, judged
from rleaas.verify.means import FunctionSource

from ..llm.model_server import Said, in_turn, model_server  # noqa: TID252 - plays the model

JUDGE = Definition(
    type="llm_judge", id="j", version=1, logic={"evaluation_prompt": "Good?", "judge_model": "big"}
)
NOBODY: dict[str, Definition] = {}
GOOD = json.dumps({"scores": {"overall": 5}, "explanation": "good"})
EPISODE = Trajectory.of([{"tool": "pay", "reward": 1.0}], {"paid": True})


def test_the_operators_model_judges_and_its_answers_outlive_the_server(tmp_path: Path) -> None:
    with model_server(in_turn(GOOD, Said("down", status=400))) as server:
        endpoint = ModelEndpoint(url=server.openai, model="tiny", key=Secret("sk-judge"))
        for _ in range(2):
            with Judging(endpoint, tmp_path).judge(JUDGE, NOBODY.__getitem__) as judge:
                assert judge.judge(EPISODE).score == 1.0
        with Judging(endpoint, tmp_path).judge(JUDGE, NOBODY.__getitem__, fresh=True) as judge:
            assert judged(judge, EPISODE).to_dict()["outcome"] == "grader_error"

    assert [one["model"] for one in server.requests][:1] == ["tiny"]
    assert "sk-judge" not in "".join(path.read_text() for path in tmp_path.glob("*/*"))


def test_a_judge_is_a_url_and_a_model_with_its_key_in_the_environment() -> None:
    found = judge_endpoint("http://127.0.0.1:1/v1", "tiny", {"RLEAAS_JUDGE_KEY": "sk-1"})

    assert found is not None
    assert (found.key and found.key.reveal(), found.model) == ("sk-1", "tiny")
    assert judge_endpoint(None, None, {"RLEAAS_JUDGE_KEY": "sk-1"}) is None
    for url, model in ((None, "tiny"), ("http://h/v1", None), ("nowhere", "tiny")):
        with pytest.raises(ConfigurationError):
            judge_endpoint(url, model, {})


SOURCE = """
import os, time

print("imported")

def judge(trajectory):
    amount = trajectory.state["amount"]
    print("judging", amount)
    if amount == 1:
        os._exit(7)
    if amount == 2:
        return "fine"
    if amount == 3:
        return any(name.startswith("RLEAAS_") for name in os.environ)
    return amount / 10
"""


@pytest.fixture
def process() -> Generator[FunctionProcess]:
    source = FunctionSource(
        source=SOURCE,
        function="judge",
        threshold=0.5,
        policy=FailurePolicy(penalty=-1.0),
        verifier="v",
        version=3,
    )
    with FunctionProcess(source) as process:
        yield process


def test_a_function_judges_in_a_process_of_its_own(process: FunctionProcess) -> None:
    verdicts = [process.judge(Trajectory.of([], {"amount": amount})) for amount in (4, 9)]

    assert [(one.score, one.passed) for one in verdicts] == [(0.4, False), (0.9, True)]
    assert verdicts[0].reward == pytest.approx(0.4 - 1.0)
    assert (verdicts[0].verifier, verdicts[0].version) == ("v", 3)


def test_a_function_that_ends_its_process_gives_no_score_and_may_judge_again(
    process: FunctionProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLEAAS_JUDGE_KEY", "sk-judge")
    with pytest.raises(GraderError, match="code 7") as gone:
        process.judge(Trajectory.of([], {"amount": 1}))
    with pytest.raises(GraderError) as prose:
        process.judge(Trajectory.of([], {"amount": 2}))

    assert (gone.value.reason, prose.value.reason) == ("exception", "invalid_answer")
    # It has none of the server's secrets.
    assert process.judge(Trajectory.of([], {"amount": 3})).score == 0.0
