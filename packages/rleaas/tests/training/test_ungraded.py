"""Verifiers of a job that cannot judge: no score, no success, and no training without a judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from rlcore import GraderError
from rleaas.training.rewards.remote_judge import RemoteJudge
from rleaas.training.rewards.verified_env import MOST_UNGRADED, VerifiedEnv, verifiers_of
from rleaas.verify import Definition, FailurePolicy, Trajectory, judge_of
from rleaas.verify.definition import to_json

from ..llm.model_server import Said, model_server  # noqa: TID252 - plays the server

EPISODE = Trajectory.of([{"tool": "pay", "reward": float("nan")}], {"paid": True})


class Short(gymnasium.Env[Any, Any]):
    """Every episode is one step long, and its info is the state of the test."""

    observation_space = spaces.Box(0, 1, (1,), np.float32)
    action_space = spaces.Discrete(2)
    told: Mapping[str, object] = {}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        return np.zeros(1, np.float32), 0.5, True, False, {"state": dict(self.told)}


def judged_by(*definitions: Definition, **more: object) -> dict[str, object]:
    return {
        "weights": {one.id: 2.0 for one in definitions},
        "definitions": [to_json(one) for one in definitions],
        **more,
    }


RULE = Definition(type="rule_based", id="rule", logic={"conditions": ["paid"]})
CODE = Definition(
    type="python",
    id="code",
    version=3,
    logic={"source": "def judge(t):\n    return t.state['paid'] / 2\n", "function": "judge"},
    failure_policy={"penalty": -1.0},
)
LLM = Definition(type="llm_judge", id="llm", version=5, logic={"evaluation_prompt": "Good?"})


def test_a_function_judges_in_the_worker_and_its_penalty_counts() -> None:
    env = VerifiedEnv(Short(), verifiers_of(judged_by(RULE, CODE)))
    Short.told = {"paid": 1}
    env.reset()
    *_, passed = env.step(0)
    Short.told = {"paid": 0}
    env.reset()
    _, reward, *_, failed = env.step(0)

    assert passed["verifier_scores"] == {"rule": 1.0, "code": 0.5}
    assert (passed["is_success"], failed["is_success"]) == (True, False)
    # By hand: 0.5 of the step, 2 x 0 of the rule, 2 x (0 - 1) of the function.
    assert reward == pytest.approx(0.5 - 2.0)


def test_an_episode_without_a_verdict_has_no_verifiers_reward_and_no_success() -> None:
    lines: list[str] = []
    env = VerifiedEnv(Short(), verifiers_of(judged_by(RULE, CODE)), lines.append)
    Short.told = {}  # the function looks for what is not there
    env.reset()
    _, reward, *_, info = env.step(0)

    assert reward == 0.5
    assert info["grader_errors"] == {"code": "exception"}
    assert not {"is_success", "composite_verifier_score", "verifiers_passed"} & set(info)
    assert any("verifier code could not judge an episode" in line for line in lines)


def test_a_training_whose_judge_is_gone_ends_with_its_reason() -> None:
    env = VerifiedEnv(Short(), verifiers_of(judged_by(CODE)))
    Short.told = {}
    for _ in range(MOST_UNGRADED - 1):
        env.reset()
        env.step(0)
    env.reset()
    with pytest.raises(GraderError, match="10 episodes in a row had no verdict") as caught:
        env.step(0)

    assert (caught.value.verifier, caught.value.reason) == ("code", "exception")


def test_a_worker_lets_its_server_ask_the_language_model(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = judge_of(RULE).judge(Trajectory((), {"paid": True}))
    with model_server(Said(body=verdict.to_dict())) as server:
        monkeypatch.setenv("RLEAAS_BASE_URL", server.root)
        monkeypatch.setenv("RLEAAS_API_KEY", "tok")
        (one,) = verifiers_of(judged_by(LLM, judge_at="/api/worker/training/j/judge"))
        said = one.judge.judge(EPISODE)
        (request,) = server.requests

    assert isinstance(one.judge, RemoteJudge)
    assert (said, said.policy) == (verdict, FailurePolicy())
    assert (request.path, request["verifier_id"]) == ("/api/worker/training/j/judge", "llm")
    assert request["steps"][0]["reward"] == "nan"  # JSON has no such number
    assert request.headers["Authorization"] == "Bearer tok"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (Said("no such job", status=404), "refused"),
        (
            Said(body={"outcome": "grader_error", "error": {"reason": "prose", "detail": "hm"}}),
            "prose",
        ),
    ],
)
def test_a_server_that_does_not_judge_gives_no_score(
    monkeypatch: pytest.MonkeyPatch, said: Said, reason: str
) -> None:
    with model_server(said) as server:
        monkeypatch.setenv("RLEAAS_BASE_URL", server.root)
        monkeypatch.setenv("RLEAAS_API_KEY", "tok")
        with pytest.raises(GraderError) as caught:
            RemoteJudge(path="/judge", verifier="llm", version=5).judge(EPISODE)

    assert (caught.value.reason, caught.value.verifier) == (reason, "llm")
