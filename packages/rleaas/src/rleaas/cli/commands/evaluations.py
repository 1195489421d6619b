"""`rleaas eval …`: evaluations of checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rlcore import ConfigurationError

from rleaas.cli.command import Asked, command
from rleaas.cli.commands.rollouts import print_comparison
from rleaas.cli.console import Column, columns, print_facts, print_json, print_table, say, stderr
from rleaas.cli.nouns import noun
from rleaas.cli.options import Limit
from rleaas.cli.references import CheckpointRef, EnvOption, EvaluationRef

if TYPE_CHECKING:
    from rleaas.models import EvaluationReport

app = noun("eval")

SHOWN = (
    Column("evaluation", "id"),
    *columns("status", "name", "error"),
    Column("environment", lambda one: f"{one.environment_name}@{one.environment_version}"),
    Column("digest", "contract_digest"),
    Column("checkpoint", "agent_checkpoint_id"),
    Column("episodes", lambda one: f"{one.episodes_done} of {len(one.seeds)}"),
    Column("started", "started_at"),
    Column("ended", "completed_at"),
)
Timeout = Annotated[float, typer.Option(min=0, help="Seconds to wait at most.")]


@command(
    app,
    "run",
    "run ckpt_1 --seeds 0:50 --success-threshold 475",
    "run ckpt_1 --env MyCartPole@2 --no-wait --json",
)
def run(
    asked: Asked,
    checkpoint: CheckpointRef,
    environment: EnvOption = None,
    seeds: Annotated[
        str, typer.Option(metavar="SEEDS", help="FIRST:END, or seeds separated by commas.")
    ] = "0:20",
    max_episode_steps: Annotated[
        int | None, typer.Option(min=1, help="Steps of an episode at most.")
    ] = None,
    success_threshold: Annotated[
        float | None, typer.Option(help="An episode with this return, or more, is a success.")
    ] = None,
    name: Annotated[str, typer.Option(help="A name for the report.")] = "",
    version: Annotated[
        int | None, typer.Option(min=1, help="An older version of the environment.")
    ] = None,
    wait: Annotated[bool, typer.Option(help="Wait for the report.")] = True,
    timeout: Timeout = 3600.0,
) -> None:
    """Evaluate a checkpoint on the platform, and print the report."""
    from rleaas.quickstart.shown import Shown

    chosen = seeds_from(seeds)
    evaluation = asked.client.Evaluation.run(
        agent_checkpoint_id=checkpoint,
        environment_name=environment or "",
        environment_version=version,
        seeds=chosen,
        max_episode_steps=max_episode_steps,
        success_threshold=success_threshold,
        name=name,
    )
    if not wait:
        _print_started(evaluation.id, evaluation.record, asked.as_json)
        return
    with Shown(stderr()).bar("episodes", len(chosen)) as bar:
        report = evaluation.wait_until_complete(
            timeout=timeout,
            poll_interval=0.5,
            on_progress=lambda seen: bar.show(seen.episodes_done, seen.status),
            progress=False,
        )
    _print_report(report, asked.as_json)


@command(app, "report", "report eval_1", "report eval_1 --json > report.json")
def report(asked: Asked, evaluation_id: EvaluationRef) -> None:
    """Show an evaluation's report: coverage, intervals, every episode."""
    _print_report(asked.client.Evaluation.get_report(evaluation_id), asked.as_json)


@command(app, "get", "get eval_1")
def get(asked: Asked, evaluation_id: EvaluationRef) -> None:
    """Show how an evaluation is doing."""
    asked.facts(asked.client.Evaluation.get(evaluation_id), SHOWN)


@command(app, "wait", "wait eval_1 --timeout 600")
def wait(asked: Asked, evaluation_id: EvaluationRef, timeout: Timeout = 3600.0) -> None:
    """Wait for an evaluation and print its report; exit with 1 if it fails or takes too long."""
    found = asked.client.Evaluation.get(evaluation_id)
    done = found.wait_until_complete(
        timeout=timeout, poll_interval=0.5, progress=False if asked.as_json else None
    )
    _print_report(done, asked.as_json)


@command(app, "cancel", "cancel eval_1")
def cancel(asked: Asked, evaluation_id: EvaluationRef) -> None:
    """Ask an evaluation to end; the episodes that it has finished stay."""
    asked.done(asked.client.Evaluation.cancel(evaluation_id), f"asked {evaluation_id} to stop")


@command(app, "list", "list --status completed --limit 20")
def list_evaluations(
    asked: Asked,
    status: Annotated[str | None, typer.Option(help="Only those in this status.")] = None,
    limit: Limit = None,
) -> None:
    """List the evaluations, newest first."""
    asked.rows(
        asked.client.Evaluation.list(status, limit),
        (
            Column("evaluation", "id"),
            *columns("status"),
            Column("environment", lambda one: f"{one.environment}@{one.environment_version}"),
            Column("checkpoint", "agent_checkpoint_id"),
            *columns("name"),
        ),
        empty="No evaluations. `rleaas eval run CHECKPOINT_ID` makes one.",
    )


@command(
    app,
    "compare",
    "compare eval_1 eval_2",
    "compare ckpt_1 ckpt_2 --checkpoints --env MyCartPole --json",
)
def compare(
    asked: Asked,
    baseline: Annotated[
        str, typer.Argument(metavar="BASELINE", help="An evaluation, or with --checkpoints one.")
    ],
    trained: Annotated[str, typer.Argument(metavar="TRAINED", help="What is held against it.")],
    environment: EnvOption = None,
    are_checkpoints: Annotated[
        bool,
        typer.Option(
            "--checkpoints",
            help="Compare checkpoints by their newest evaluations over the same seeds; those that "
            "are missing are started and waited for a while.",
        ),
    ] = False,
) -> None:
    """Show how two evaluations, or two checkpoints, differ, seed by seed."""
    if are_checkpoints:
        found = asked.client.Evaluation.compare(
            (baseline, trained), environment_name=environment or ""
        )
    else:
        place = environment or asked.client.Evaluation.get(baseline).record.environment
        found = asked.client.Evaluation.get_rollout_comparison(place or "", baseline, trained)
    print_comparison(asked, found)


@command(
    app,
    "export",
    "export eval_1 report.pdf",
    "export eval_1 report.csv --signature --json",
)
def export(
    asked: Asked,
    evaluation_id: EvaluationRef,
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="Where to; its ending says the format.")
    ],
    format: Annotated[
        str | None, typer.Option(help="`json`, `csv` or `pdf`, whatever the file is called.")
    ] = None,
    episodes: Annotated[bool, typer.Option(help="With each episode.")] = True,
    explanations: Annotated[bool, typer.Option(help="With what verifiers said.")] = True,
    signature: Annotated[
        bool, typer.Option("--signature", help="Print the platform's signature of the file too.")
    ] = False,
) -> None:
    """Let the platform write a report about an evaluation, and save the file."""
    chosen = format or path.suffix.lower().removeprefix(".") or "json"
    made = asked.client.Evaluation.export_audit_report(
        evaluation_id, chosen, episodes, explanations, signature
    )
    saved = asked.client.Evaluation.download_report(made, path)
    if asked.as_json:
        print_json({**made.to_dict(), "saved": str(saved)})
        return
    print_facts({"saved": saved, "sha256": made.sha256, "signature": made.signature})


def seeds_from(text: str) -> tuple[int, ...]:
    """Read `FIRST:END` (END not included), or seeds separated by commas.

    Raises:
        ConfigurationError: it is neither, or there is no seed in it.
    """
    try:
        if ":" in text:
            first, end = text.split(":")
            seeds = tuple(range(int(first or 0), int(end)))
        else:
            seeds = tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise ConfigurationError(
            f"--seeds {text!r} is not FIRST:END or a list of numbers",
            hint="Write 0:50, or 3,17,99.",
        ) from error
    if not seeds or min(seeds) < 0:
        raise ConfigurationError(
            f"--seeds {text!r} gives no seeds from 0", hint="Write 0:50, or 3,17,99."
        )
    return seeds


def _print_started(evaluation_id: str, record: object, as_json: bool) -> None:
    if as_json:
        print_json(record)
        return
    say(f"started {evaluation_id}; `rleaas eval report {evaluation_id}` shows its report")


def _print_report(report: EvaluationReport, as_json: bool) -> None:
    if as_json:
        print_json(report)
        return
    print_facts(
        {
            "evaluation": report.id,
            "status": report.status,
            "error": report.error,
            "environment": f"{report.environment_name}@{report.environment_version}",
            "digest": report.contract_digest,
            "checkpoint": report.agent_checkpoint_id,
            "episodes": f"{report.asked} asked, {report.scored} scored, {report.failed} failed",
            "mean return": _interval(report.mean_return, report.return_interval),
            "success rate": _interval(report.success_rate, report.success_interval),
        }
    )
    say("")
    print_table(
        ("episode", "seed", "outcome", "return", "steps", "error"),
        [(e.index, e.seed, e.outcome, e.reward, e.steps, e.error) for e in report.episodes],
        empty="No episodes yet.",
    )


def _interval(value: float | None, bounds: tuple[float, float] | None) -> str | None:
    if value is None:
        return None
    if bounds is None:
        return f"{value:.4g}"
    low, high = bounds
    return f"{value:.4g} [{low:.4g}, {high:.4g}] (95 %)"
