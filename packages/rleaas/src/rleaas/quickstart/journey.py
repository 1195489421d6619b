"""The whole way: register, train, evaluate, load, run locally, compare."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.text import Text
from rlcore import EnvironmentIdentity

from rleaas.quickstart.compare import Agreement
from rleaas.quickstart.curve import Curve
from rleaas.quickstart.evaluate import evaluate, run_locally
from rleaas.quickstart.plan import Plan
from rleaas.quickstart.report import Findings, agreement_grid, results_table
from rleaas.quickstart.shown import INDENT, Shown
from rleaas.quickstart.train import learning_curve, register, train

if TYPE_CHECKING:
    from rleaas import Blocking, Client, TrainingJobResource

CURVE_WIDTH = 90


def travel(client: Client, plan: Plan, shown: Shown) -> Findings:
    """Do it all on the client's server and return what was found.

    Raises:
        Error: a part failed; what was done before it stays on the server.
    """
    began = time.monotonic()
    shown.chapter(f"Register {plan.environment} from {plan.source}")
    environment = register(client, plan)
    identity = EnvironmentIdentity(
        environment.name, environment.version, environment.contract_digest or ""
    )
    shown.tell(f"ready: {identity}")

    shown.chapter(f"Train PPO until its mean return is {plan.good:g}")
    job = train(client, plan, shown)
    _tell_training(job, plan, shown)
    curve = Curve(f"PPO on {plan.environment}", learning_curve(job), plan.good)
    png = curve.save_png(plan.out / "curve.png")
    _draw(curve, shown)

    checkpoint = job.get_best_checkpoint()
    shown.chapter(f"Evaluate the best checkpoint on the platform, {len(plan.seeds)} seeds")
    shown.tell(f"checkpoint {checkpoint.id}, SHA-256 {(checkpoint.sha256 or '')[:12]}…")
    platform = evaluate(client, plan, checkpoint, shown)
    shown.tell(f"{platform.scored} of {platform.asked} episodes scored")

    shown.chapter(f"Run it here: rlmesh.run(model, 'rleaas://{identity.name}@{identity.version}')")
    local = run_locally(client, plan, checkpoint, shown)
    shown.tell(f"stepped {local.environment}")

    shown.chapter("Compare, episode by episode")
    agreement = Agreement.between(platform.episodes, local.episodes)
    shown.tell(agreement_grid(agreement, width=shown.console.width - INDENT))
    findings = Findings(
        plan=plan,
        identity=identity,
        job=job.record,
        checkpoint=checkpoint.record,
        platform=platform,
        local=local,
        agreement=agreement,
        seconds=time.monotonic() - began,
        curve_png=png,
    )
    findings.save(plan.out / "report.json")
    shown.tell(results_table(findings))
    return findings


def conclude(findings: Findings, shown: Shown) -> None:
    """Say how it came out, and what to try next."""
    shown.console.print()
    pairs = findings.agreement.pairs
    if findings.shortcomings:
        for sentence in findings.shortcomings:
            shown.tell(Text(f"✗ {sentence}", style="bold red"))
        return
    shown.tell(
        Text(
            f"✓ Platform and this machine agree on all {len(pairs)} episodes of "
            f"{findings.identity}, after {findings.seconds:.0f} s.",
            style="bold green",
        )
    )
    shown.tell(f"curve:  {findings.curve_png}")
    shown.tell(f"report: {findings.plan.out / 'report.json'}")
    shown.console.print()
    shown.tell(Text("Try next", style="bold"))
    for command in next_steps(findings.plan):
        shown.tell(f"  {command}")


def next_steps(plan: Plan) -> tuple[str, ...]:
    """Return commands that go on from where the quickstart ended."""
    serve = () if plan.base_url else (f"rleaas serve --data {plan.data_folder}",)
    return (
        *serve,
        "rleaas job list",
        f"rlmesh run random rleaas://{plan.environment} --episodes 5",
        f"rleaas job start {plan.environment} --episodes 300 --config gamma=0.95 --wait",
    )


def _tell_training(job: TrainingJobResource[Blocking], plan: Plan, shown: Shown) -> None:
    state = job.record
    reached = state.results.avg_reward
    shown.tell(
        f"{state.status}: mean return {reached:.1f} after {state.current_episode} episodes "
        f"and {state.results.total_steps:,} steps, {state.results.wall_seconds:.0f} s"
    )
    if reached is not None and reached < plan.good:
        shown.tell(f"not good yet: {plan.episodes} episodes were too few for {plan.good:g}")


def _draw(curve: Curve, shown: Shown) -> None:
    console = shown.console
    width = min(CURVE_WIDTH, console.width - 1)
    drawn = curve.in_terminal(width=width, colour=console.is_terminal)
    shown.tell(Text.from_ansi(drawn) if console.is_terminal else Text(drawn))
