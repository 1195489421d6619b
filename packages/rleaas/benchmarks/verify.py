"""How many episodes verifiers judge in a second, on one core, and what the worst expression costs.

    python packages/rleaas/benchmarks/verify.py [--json] [--seconds 1]

Seconds are those of the processor that this process had, so that a busy machine says the same.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from rlcore import ExpressionError
from rleaas.verify import Definition, EpisodeRecorder, Expression, Judge, Trajectory, judge_of

STEPS = 20
TARGET = 50_000
"""Verdicts of rules a second, for an episode of 20 steps."""

RULE = Definition(
    type="rule_based",
    id="rule",
    logic={
        "conditions": [
            "'run_aml_check' in trajectory.tool_calls",
            "transfer_amount <= 200000 OR 'request_approval' in trajectory.tool_calls",
            "trajectory.length <= 20",
        ]
    },
)
ORDER = Definition(
    type="trajectory_based",
    id="order",
    logic={
        "required_actions": ["verify_identity", "run_aml_check"],
        "ordering_constraints": [{"before": "verify_identity", "after": "run_aml_check"}],
        "forbidden_actions": ["skip_checks"],
        "max_allowed_steps": STEPS,
    },
)
WHOLE = Definition(
    type="composite",
    id="whole",
    logic={
        "components": [
            {"verifier_id": "rule", "weight": 0.4, "floor": 0.5},
            {"verifier_id": "order", "weight": 0.3},
        ]
    },
)
TOOLS = ("verify_identity", "run_aml_check", "read_account", "submit_transfer")


def episode() -> list[dict[str, object]]:
    """The steps of an episode, as JSON."""
    return [
        {"tool": TOOLS[number % len(TOOLS)], "arguments": {"step": number}, "reward": 0.1}
        for number in range(STEPS)
    ]


def rate(work: Callable[[], object], seconds: float) -> float:
    """How often the work is done in a second of the processor."""
    for _ in range(200):
        work()
    done, began = 0, time.process_time()
    while (took := time.process_time() - began) < seconds:
        for _ in range(100):
            work()
        done += 100
    return done / took


def recorded() -> Callable[[], Trajectory]:
    """Recording an episode of vectors, step by step."""
    recorder = EpisodeRecorder(action_names=dict(enumerate(TOOLS)), observations=False)
    observation = np.zeros(8, np.float32)

    def record() -> Trajectory:
        recorder.begin({})
        for number in range(STEPS):
            recorder.step(number % 4, observation, 0.1, {})
        return recorder.trajectory()

    return record


def worst(seconds: float) -> float:
    """Seconds that an expression takes which looks at as much as it may."""
    names = {"many": list(range(100_000))}
    expression = Expression(" + ".join(["sum(many)"] * 30))
    began = time.process_time()
    try:
        expression.evaluate(names)
    except ExpressionError:
        return time.process_time() - began
    raise AssertionError(f"nothing stopped it within {seconds} s")


def measure(seconds: float) -> dict[str, float]:
    """All figures."""
    known = {one.id: one for one in (RULE, ORDER, WHOLE)}
    judges: dict[str, Judge] = {
        one.id: judge_of(one, known.__getitem__) for one in (RULE, ORDER, WHOLE)
    }
    steps, state = episode(), {"transfer_amount": 1_000}
    trajectory = Trajectory.of(steps, state)
    figures = {
        f"{name}_verdicts_per_second": rate(partial(judge.judge, trajectory), seconds)
        for name, judge in judges.items()
    }
    rule = judges["rule"]
    figures["rule_verdicts_of_new_trajectories_per_second"] = rate(
        lambda: rule.judge(Trajectory(trajectory.steps, trajectory.state)), seconds
    )
    figures["trajectories_of_json_per_second"] = rate(lambda: Trajectory.of(steps, state), seconds)
    figures["episodes_recorded_per_second"] = rate(recorded(), seconds)
    figures["conditions_read_per_second"] = rate(
        lambda: Expression("transfer_amount <= 200000 OR 'a' in trajectory.tool_calls"), seconds
    )
    figures["worst_expression_seconds"] = worst(seconds)
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=1.0)
    asked = parser.parse_args()
    figures = measure(asked.seconds)
    if asked.json:
        print(json.dumps(figures))  # noqa: T201
        return
    for name, figure in figures.items():
        print(f"{name.replace('_', ' '):52} {figure:12,.3f}")  # noqa: T201
    met = "met" if figures["rule_verdicts_per_second"] >= TARGET else "missed"
    print(f"target: {TARGET:,} verdicts of rules per second: {met}")  # noqa: T201


if __name__ == "__main__":
    main()
