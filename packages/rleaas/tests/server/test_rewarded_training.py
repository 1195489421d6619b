"""A real job whose rewards, judge, scenarios and tiers come from the request."""

from pathlib import Path
from typing import cast

import pytest

from .conftest import Running, Start

BANK = """
import gymnasium
import numpy as np

class Bank(gymnasium.Env):
    metadata = {"action_names": ["read_account", "run_aml_check", "submit_transfer"]}
    observation_space = gymnasium.spaces.Box(0, 10, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        self.risk = (options or {}).get("scenario", {}).get("context_injection", {}).get("risk", 9)
        self.left = 3
        return self.seen(), {}

    def seen(self):
        return np.array([self.left, self.risk], np.float32)

    def step(self, action):
        self.left -= 1
        return self.seen(), 0.0, self.left == 0, False, {"risk": self.risk}
"""
SMALL = {"seed": 3, "n_steps": 32, "num_envs": 2, "n_epochs": 4, "checkpoint_interval": 50}


@pytest.fixture
def bank(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Running:
    """A server with a bank that gives no reward of its own."""
    (tmp_path / "bank_of_test.py").write_text(BANK)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    platform = start(real=True)
    platform.register("Bank", source="python://bank_of_test:Bank")
    return platform


def metrics(platform: Running, job: str) -> list[dict[str, object]]:
    """What was said of each episode, in order."""
    told = platform.ok(platform.http.get(f"/api/training/jobs/{job}/metrics"))
    return [
        one for one in platform.listed(told, "metrics") if one.get("episode_reward") is not None
    ]


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_a_job_learns_what_its_verifier_rewards_and_masters_a_tier(bank: Running) -> None:
    logic = {"conditions": ["count(trajectory.tool_calls, 'run_aml_check') == 3 or risk > 5"]}
    verifier = {"id": "aml", "name": "AML", "type": "rule_based", "logic": logic}
    bank.ok(bank.http.post("/api/verifiers", json=verifier))
    for tier in (1, 2):
        scenario = {
            "id": f"scen_{tier}",
            "name": f"risk {tier}",
            "tier": tier,
            "environment": "Bank",
            "context_injection": {"risk": tier},
        }
        bank.ok(bank.http.post("/api/scenarios", json=scenario))
    suite = {"id": "suite_1", "name": "risks", "scenario_ids": ["scen_1", "scen_2"]}
    bank.ok(bank.http.post("/api/scenarios", json={**suite, "purpose": "training"}))

    job = bank.train(
        "Bank",
        algorithm="PPO",
        num_episodes=400,
        max_steps=10,
        scenario_id="suite_1",
        verifier_ids=["aml"],
        verifier_weights={"aml": 2.0},
        config={
            **SMALL,
            "learning_rate": 0.01,
            "reward_fn": "reward - 0.1 * (action == 0)",
            "curriculum": {"enabled": True, "tier_1_mastery_threshold": 0.5, "window": 20},
        },
    )
    bank.server.state.scheduler.wait_finished("training", job, 150)
    record = bank.ok(bank.http.get(f"/training/{job}"))
    assert record["status"] == "completed", record

    told = metrics(bank, job)
    scores = [cast("float", one["composite_verifier_score"]) for one in told]
    # By chance one episode in 27 calls the check three times.
    assert sum(scores[:30]) / 30 < 0.4
    assert sum(scores[-30:]) / 30 > 0.7
    last = next(one for one in reversed(told) if one["composite_verifier_score"] == 1.0)
    assert last["episode_reward"] == pytest.approx(2.0)
    assert last["verifier_scores"] == {"aml": 1.0}
    results = cast("dict[str, object]", record["results"])
    assert results["current_tier"] == 2
    feed = bank.ok(bank.http.get("/api/events", params={"kind": "tier_advance", "after": 0}))
    (advance,) = bank.listed(feed, "events")
    data = cast("dict[str, object]", advance["data"])
    assert (data["from_tier"], data["current_tier"]) == (1, 2)
    kept = bank.ok(bank.http.get(f"/api/training/jobs/{job}/checkpoints"))
    (*_, newest) = bank.listed(kept, "checkpoints")
    assert newest["composite_verifier_score"] is not None
    page = bank.ok(bank.http.get("/api/rollouts/Bank", params={"limit": 1}))
    assert page["total"] == 200  # every second one
    (last,) = bank.listed(page, "rollouts")
    assert (last["episode_number"], last["source"], last["total_steps"]) == (398, "training", 3)
    assert str(last["scenario_id"]).startswith("scen_")
    whole = bank.ok(bank.http.get(f"/api/rollouts/Bank/{last['id']}"))
    tools = [one["tool"] for one in bank.listed(whole, "steps")]
    assert set(tools) <= {"read_account", "run_aml_check", "submit_transfer"}
    assert (tools == ["run_aml_check"] * 3) == (whole["score"] == 1.0)
    assert bank.ok(bank.http.get("/kpis"))["episodes"] == 0
