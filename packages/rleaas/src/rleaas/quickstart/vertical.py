"""The way through a built-in world: a random agent, a training, and both on the held-out suite."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from rleaas.quickstart.curve import Curve
from rleaas.quickstart.shown import Bar, Shown
from rleaas.quickstart.train import (
    READY_SECONDS,
    TRAINING_SECONDS,
    cancelled_on_interrupt,
    learning_curve,
)
from rleaas.quickstart.vertical_plan import SETTINGS, VerticalPlan

if TYPE_CHECKING:
    from rleaas import Blocking, Client, EvaluationJobResource, TrainingJobResource
    from rleaas.models import EvaluationReport

EVALUATION_SECONDS = 300.0
POLL_SECONDS = 0.3
GOOD = 0.95
SUCCESS = "task success"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compliance:
    """What the two agents did on the held-out suite.

    Attributes:
        metrics: the names of the world's rates, and the verifier of each; the first one is what the
            training was rewarded for.
    """

    plan: VerticalPlan
    metrics: Mapping[str, str]
    job_id: str
    checkpoint_id: str
    random: EvaluationReport
    trained: EvaluationReport
    seconds: float
    curve_png: Path
    shortcomings: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, object]:
        """Return the findings as plain JSON values."""
        return {
            "vertical": self.plan.vertical,
            "metrics": dict(self.metrics),
            "job_id": self.job_id,
            "checkpoint_id": self.checkpoint_id,
            "random": self.random.model_dump(mode="json"),
            "trained": self.trained.model_dump(mode="json"),
            "shortcomings": list(self.shortcomings),
            "seconds": round(self.seconds, 1),
            "curve": str(self.curve_png),
        }


def travel_through(client: Client, plan: VerticalPlan, shown: Shown) -> Compliance:
    """Do it all on the client's server and return what was found.

    Raises:
        Error: a part failed; what was done before it stays on the server.
    """
    from rleaas.sims.catalogue import vertical_of

    began = time.monotonic()
    world = vertical_of(plan.vertical)
    metrics = dict(world.metrics)
    headline = next(iter(metrics))

    shown.chapter(f"Register {plan.environment}: {world.summary}")
    environment = client.Environment.create(plan.environment, vertical=world.name)
    environment.wait_until_ready(timeout=READY_SECONDS, progress=False)
    suite = next(
        one
        for one in client.ScenarioSuite.list(purpose="evaluation")
        if (one.source, one.vertical) == ("built-in", world.name)
    )
    shown.tell(f"{len(world.tools)} tools; {len(suite.scenario_ids)} scenarios are held out")

    def evaluate(label: str, **who: Any) -> EvaluationReport:
        evaluation = client.Evaluation.run(
            environment_name=plan.environment,
            scenario_suite_id=suite.id,
            verifier_ids=list(metrics.values()),
            seeds=range(plan.seeds),
            name=label,
            **who,
        )
        return _watched(evaluation, label, len(suite.scenario_ids) * plan.seeds, shown)

    shown.chapter(f"Let a random agent play {suite.id}")
    random = evaluate("random agent", agent="random")
    shown.tell(_outcome(headline, random, metrics[headline]))

    shown.chapter(f"Train GRPO on other scenarios, {plan.episodes} episodes")
    job = _train(client, plan, metrics[headline], shown)
    curve = Curve(f"GRPO on {plan.environment}", learning_curve(job))
    png = curve.save_png(plan.out / "curve.png")
    width = min(90, shown.console.width - 1)
    drawn = curve.in_terminal(width=width, colour=shown.console.is_terminal)
    shown.tell(Text.from_ansi(drawn) if shown.console.is_terminal else Text(drawn))

    checkpoint = job.get_best_checkpoint()
    shown.chapter(f"Let checkpoint {checkpoint.id} play {suite.id}")
    trained = evaluate("trained agent", agent_checkpoint_id=checkpoint.id)
    found = Compliance(
        plan=plan,
        metrics=metrics,
        job_id=job.id,
        checkpoint_id=checkpoint.id,
        random=random,
        trained=trained,
        seconds=time.monotonic() - began,
        curve_png=png,
        shortcomings=_shortcomings(headline, metrics[headline], random, trained),
    )
    path = plan.out / "report.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found.to_dict(), indent=2), encoding="utf-8")
    shown.tell(compliance_table(found))
    return found


def conclude_through(found: Compliance, shown: Shown) -> None:
    """Say how it came out, and what to try next."""
    shown.console.print()
    if found.shortcomings:
        for sentence in found.shortcomings:
            shown.tell(Text(f"✗ {sentence}", style="bold red"))
        return
    headline, verifier = next(iter(found.metrics.items()))
    said = _outcome(headline, found.trained, verifier)
    shown.tell(
        Text(f"✓ {said} on held-out scenarios, after {found.seconds:.0f} s.", style="bold green")
    )
    plan = found.plan
    shown.tell(f"curve:  {found.curve_png}")
    shown.tell(f"report: {plan.out / 'report.json'}")
    shown.console.print()
    shown.tell(Text("Try next", style="bold"))
    if plan.base_url is None:
        shown.tell(f"  rleaas serve --data {plan.data_folder}")
    shown.tell(f"  rleaas eval report {found.trained.id}")
    shown.tell(f"  rleaas scenario library --vertical {plan.vertical}")


def compliance_table(found: Compliance) -> Table:
    """Return how often both agents did their task and kept each rule, with 95 % intervals."""
    table = Table(box=SIMPLE_HEAD, header_style="bold")
    for column in ("95 % intervals", "random agent", "trained agent"):
        table.add_column(column, no_wrap=True)
    table.add_row(SUCCESS, *(_succeeded(one) for one in (found.random, found.trained)))
    for name, verifier in found.metrics.items():
        table.add_row(name, _passed(found.random, verifier), _passed(found.trained, verifier))
    table.add_row(
        "episodes scored", *(f"{one.scored}/{one.asked}" for one in (found.random, found.trained))
    )
    return table


def _train(
    client: Client, plan: VerticalPlan, verifier: str, shown: Shown
) -> TrainingJobResource[Blocking]:
    job = client.TrainingJob.run(
        environment_name=plan.environment,
        algorithm="GRPO",
        name="quickstart",
        config={
            **SETTINGS,
            "episodes": plan.episodes,
            "max_steps": plan.max_steps,
            "checkpoint_interval": max(1, plan.episodes // 10),
        },
        seed=plan.training_seed,
        verifier_ids=[verifier],
    )
    with cancelled_on_interrupt(job), shown.bar("training: episodes", plan.episodes) as bar:
        return job.wait_until_complete(
            timeout=TRAINING_SECONDS,
            poll_interval=POLL_SECONDS,
            on_progress=lambda seen: _show(bar, seen),
            progress=False,
        )


def _show(bar: Bar, seen: Mapping[str, object]) -> None:
    done, mean = cast("int", seen["current_episode"] or 0), seen["avg_reward"]
    bar.show(done, f"mean return {mean:.2f}" if isinstance(mean, float) else "the worker starts")


def _watched(
    evaluation: EvaluationJobResource[Blocking], label: str, episodes: int, shown: Shown
) -> EvaluationReport:
    with shown.bar(label, episodes) as bar:
        return evaluation.wait_until_complete(
            timeout=EVALUATION_SECONDS,
            poll_interval=POLL_SECONDS,
            on_progress=lambda state: bar.show(state.episodes_done),
            progress=False,
        )


def _shortcomings(
    headline: str, verifier: str, random: EvaluationReport, trained: EvaluationReport
) -> tuple[str, ...]:
    found = [
        f"{one.failed} of {one.asked} episodes of the {label} agent have no score"
        for label, one in (("random", random), ("trained", trained))
        if one.failed
    ]
    rate = _part(trained, verifier).get("pass_rate")
    if not isinstance(rate, float) or rate < GOOD:
        said = f"{rate:.1%}" if isinstance(rate, float) else "not known"
        found.append(f"{headline} of the trained agent is {said}, not {GOOD:.0%} or more")
    return tuple(found)


def _part(report: EvaluationReport, verifier: str) -> Mapping[str, object]:
    return cast("Mapping[str, object]", report.verifier_breakdown.get(verifier, {}))


def _passed(report: EvaluationReport, verifier: str) -> str:
    part = _part(report, verifier)
    return _share(part.get("pass_rate"), part.get("pass_interval"))


def _succeeded(report: EvaluationReport) -> str:
    return _share(report.success_rate, report.success_interval)


def _share(rate: object, interval: object) -> str:
    if not isinstance(rate, int | float):
        return "-"
    if not isinstance(interval, list | tuple):
        return f"{rate:.1%}"
    low, high = cast("Sequence[float]", interval)
    return f"{rate:.1%} [{low:.1%}, {high:.1%}]"


def _outcome(name: str, report: EvaluationReport, verifier: str) -> str:
    return (
        f"{SUCCESS} {_succeeded(report)}, {name} {_passed(report, verifier)}, "
        f"over {report.scored} episodes"
    )
