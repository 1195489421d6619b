"""`rleaas eval …`: evaluations of checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rlcore import ConfigurationError

from rleaas.cli.command import Asked, command
from rleaas.cli.commands.rollouts import print_comparison
from rleaas.cli.console import Column, columns, print_facts, print_json, say, stderr
from rleaas.cli.evaluation_report import FORMATS, print_report, print_text, write_report
from rleaas.cli.nouns import noun
from rleaas.cli.options import Limit
from rleaas.cli.references import EnvOption, EvaluationRef
from rleaas.resources.references import require_one_of

app = noun("eval")

SHOWN = (
    Column("evaluation", "id"),
    *columns("status", "name", "error"),
    Column("environment", lambda one: f"{one.environment_name}@{one.environment_version}"),
    Column("digest", "contract_digest"),
    Column("checkpoint", "agent_checkpoint_id"),
    *columns("agent"),
    Column("suite", "scenario_suite_id"),
    Column("episodes", lambda one: f"{one.episodes_done} of {one.asked or len(one.seeds)}"),
    Column("started", "started_at"),
    Column("ended", "completed_at"),
)
Timeout = Annotated[float, typer.Option(min=0, help="Seconds to wait at most.")]


@command(
    app,
    "run",
    "run ckpt_1 --seeds 0:50 --success-threshold 475",
    "run ckpt_1 --env MyCartPole@2 --no-wait --json",
    "run ckpt_1 --suite suite_eval_01 --verifier 'AML check' --workers 2",
    "run --agent random --env FinSim-Prod-v1 --suite suite_eval_01",
    "run --agent-url http://127.0.0.1:11434/v1 --agent-model tiny --env Desk --suite suite_eval_01",
)
def run(
    asked: Asked,
    checkpoint: Annotated[
        str | None,
        typer.Argument(
            metavar="[CHECKPOINT_ID]",
            help="The checkpoint's id; or an agent is named.",
        ),
    ] = None,
    environment: EnvOption = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="SEEDS",
            help="FIRST:END, or seeds separated by commas; 0:20, or 0:5 with scenarios.",
        ),
    ] = None,
    suite: Annotated[str, typer.Option(metavar="SUITE", help="The scenarios of this suite.")] = "",
    scenario: Annotated[
        list[str] | None, typer.Option(metavar="SCENARIO", help="A scenario; repeatable.")
    ] = None,
    verifier: Annotated[
        list[str] | None, typer.Option(metavar="VERIFIER", help="Who judges; repeatable.")
    ] = None,
    agent: Annotated[
        str, typer.Option(help="In place of a checkpoint: `random`, `expert` or `llm`.")
    ] = "",
    agent_url: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Another endpoint of the agent llm than the server's own; anthropic:URL speaks "
            "Anthropic's protocol.",
        ),
    ] = "",
    agent_model: Annotated[
        str, typer.Option(metavar="NAME", help="Which model there, or of the server's own.")
    ] = "",
    repetitions: Annotated[
        int, typer.Option(min=1, help="How often each scenario and seed is played.")
    ] = 1,
    workers: Annotated[int, typer.Option(min=1, help="On how many environments at once.")] = 1,
    pass_threshold: Annotated[
        float | None, typer.Option(help="An episode with this score, or more, passes.")
    ] = None,
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

    scenarios = bool(suite or scenario)
    chosen = seeds_from(seeds or ("0:5" if scenarios else "0:20"))
    evaluation = asked.client.Evaluation.run(
        agent_checkpoint_id=checkpoint or "",
        agent=agent_from(agent, agent_url, agent_model),
        scenario_suite_id=suite,
        scenario_ids=scenario,
        verifier_ids=verifier,
        repetitions=repetitions,
        num_workers=workers,
        pass_threshold=pass_threshold,
        environment_name=environment or "",
        environment_version=version,
        seeds=chosen,
        max_episode_steps=max_episode_steps,
        success_threshold=success_threshold,
        name=name,
    )
    if not wait:
        print_started(evaluation.id, evaluation.record, asked.as_json)
        return
    with Shown(stderr()).bar("episodes", evaluation.record.asked or len(chosen)) as bar:
        report = evaluation.wait_until_complete(
            timeout=timeout,
            poll_interval=0.5,
            on_progress=lambda seen: bar.show(seen.episodes_done, seen.status),
            progress=False,
        )
    print_report(report, asked.as_json)


@command(
    app,
    "report",
    "report eval_1",
    "report eval_1 --format html --output report.html",
    "report eval_1 --json > report.json",
)
def report(
    asked: Asked,
    evaluation_id: EvaluationRef,
    format: Annotated[str, typer.Option(help="`table`, `json`, `csv`, `html` or `pdf`.")] = "table",
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to; else it is printed.")
    ] = None,
) -> None:
    """Show an evaluation's report: coverage, intervals, tiers, scenarios, verifiers, episodes."""
    require_one_of(format, FORMATS, "a format of a report")
    if output is not None and format == "table":
        raise ConfigurationError(
            "--output needs a --format", hint=f"One of {', '.join(FORMATS[1:])}."
        )
    found = asked.client.Evaluation.get_report(evaluation_id)
    if format in ("table", "json"):
        if output is None:
            print_report(found, asked.as_json or format == "json")
            return
        output.write_text(f"{json.dumps(found.to_dict(), indent=2)}\n", "utf-8")
        made: str | Path = output.absolute()
    else:
        made = write_report(asked.client, found, format, output)
    if isinstance(made, str):
        print_text(made)
    else:
        asked.done({"saved": str(made)}, f"saved {made}")


@command(app, "get", "get eval_1")
def get(asked: Asked, evaluation_id: EvaluationRef) -> None:
    """Show how an evaluation is doing."""
    asked.facts(asked.client.Evaluation.get(evaluation_id), SHOWN)


@command(app, "wait", "wait eval_1 --timeout 600")
def wait(asked: Asked, evaluation_id: EvaluationRef, timeout: Timeout = 3600.0) -> None:
    """Wait for an evaluation and print its report; exit with 8 if it fails, 9 if it is late."""
    found = asked.client.Evaluation.get(evaluation_id)
    done = found.wait_until_complete(
        timeout=timeout, poll_interval=0.5, progress=False if asked.as_json else None
    )
    print_report(done, asked.as_json)


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
        str | None,
        typer.Option(help="`json`, `csv`, `pdf` or `html`, whatever FILE's ending."),
    ] = None,
    episodes: Annotated[bool, typer.Option(help="With each episode.")] = True,
    explanations: Annotated[bool, typer.Option(help="With what verifiers said.")] = True,
    signature: Annotated[
        bool,
        typer.Option(
            "--signature", help="Save the platform's signature too, as FILE.sig beside the file."
        ),
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


def agent_from(agent: str, url: str, model: str) -> str | dict[str, object]:
    """The agent that the options name: a word, or a language model with its endpoint.

    Raises:
        ConfigurationError: a URL or a model is given, and the agent is no language model.
    """
    if not url and not model:
        return agent
    if agent not in ("", "llm"):
        raise ConfigurationError(
            f"--agent {agent} has no --agent-url and no --agent-model", hint="Write --agent llm."
        )
    told = {"kind": "llm", "base_url": url, "model": model}
    return {key: value for key, value in told.items() if value}


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


def print_started(evaluation_id: str, record: object, as_json: bool) -> None:
    """Print that an evaluation was begun, and how to see its report."""
    if as_json:
        print_json(record)
        return
    say(f"started {evaluation_id}; `rleaas eval report {evaluation_id}` shows its report")
