"""`rleaas eval …`: evaluations of checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rlcore import ConfigurationError

from rleaas.cli.console import print_facts, print_json, print_table, say, stderr
from rleaas.cli.options import AsJson, BaseUrl, Key, ProfileName, connect

if TYPE_CHECKING:
    from rleaas.models import EvaluationReport

app = typer.Typer(no_args_is_help=True, help="Evaluate checkpoints and read the reports.")

EvaluationId = Annotated[str, typer.Argument(metavar="EVALUATION_ID", help="The evaluation's id.")]


@app.command("run")
def run(
    checkpoint: Annotated[
        str, typer.Argument(metavar="CHECKPOINT_ID", help="The checkpoint to evaluate.")
    ],
    environment: Annotated[
        str, typer.Option("--env", metavar="ENV", help="Instead of the one it was trained on.")
    ] = "",
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
    wait: Annotated[bool, typer.Option(help="Wait for the report.")] = True,
    timeout: Annotated[float, typer.Option(help="Seconds to wait at most.")] = 3600.0,
    base_url: BaseUrl = None,
    api_key: Key = None,
    profile: ProfileName = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate a checkpoint on the platform, and print the report."""
    from rleaas.quickstart.shown import Shown

    chosen = seeds_from(seeds)
    with connect(base_url, api_key, profile) as client:
        evaluation = client.Evaluation.run(
            agent_checkpoint_id=checkpoint,
            environment_name=environment,
            seeds=chosen,
            max_episode_steps=max_episode_steps,
            success_threshold=success_threshold,
            name=name,
        )
        if not wait:
            _print_started(evaluation.id, evaluation.record, as_json)
            return
        with Shown(stderr()).bar("episodes", len(chosen)) as bar:
            report = evaluation.wait_until_complete(
                timeout=timeout,
                poll_interval=0.5,
                on_progress=lambda seen: bar.show(seen.episodes_done, seen.status),
                progress=False,
            )
    _print_report(report, as_json)


@app.command("report")
def report(
    evaluation_id: EvaluationId,
    base_url: BaseUrl = None,
    api_key: Key = None,
    profile: ProfileName = None,
    as_json: AsJson = False,
) -> None:
    """Show an evaluation's report: coverage, intervals, every episode."""
    with connect(base_url, api_key, profile) as client:
        _print_report(client.Evaluation.get_report(evaluation_id), as_json)


@app.command("list")
def list_evaluations(
    base_url: BaseUrl = None,
    api_key: Key = None,
    profile: ProfileName = None,
    as_json: AsJson = False,
) -> None:
    """List the evaluations."""
    with connect(base_url, api_key, profile) as client:
        found = [e.record for e in client.Evaluation.list()]
    if as_json:
        print_json(found)
        return
    print_table(
        ("evaluation", "status", "environment", "checkpoint", "name"),
        [
            (
                e.id,
                e.status,
                f"{e.environment}@{e.environment_version}",
                e.agent_checkpoint_id,
                e.name,
            )
            for e in found
        ],
        empty="No evaluations. `rleaas eval run CHECKPOINT_ID` makes one.",
    )


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
