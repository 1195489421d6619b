"""`rleaas eval …`: evaluations that are judged again, played again, and judged by people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rleaas.cli.command import Asked, command
from rleaas.cli.commands.evaluations import Timeout, app, print_started
from rleaas.cli.console import print_facts, print_json, print_table, say
from rleaas.cli.evaluation_report import print_report
from rleaas.cli.references import EvaluationRef

if TYPE_CHECKING:
    from rleaas.models import HumanAgreement, Kappa, Reproduction

_DAY = 86_400.0


@command(
    app,
    "rescore",
    "rescore eval_1 --verifier 'AML check'",
    "rescore eval_1 --verifier verif_rule_1 --verifier verif_comp_2 --no-wait --json",
)
def rescore(
    asked: Asked,
    evaluation_id: EvaluationRef,
    verifier: Annotated[
        list[str], typer.Option(metavar="VERIFIER", help="Who judges now; repeatable.")
    ],
    name: Annotated[str, typer.Option(help="A name for the new report.")] = "",
    pass_threshold: Annotated[
        float | None, typer.Option(help="An episode with this score, or more, passes.")
    ] = None,
    wait: Annotated[bool, typer.Option(help="Wait for the report.")] = True,
    timeout: Timeout = 3600.0,
) -> None:
    """Let verifiers judge stored rollouts, without a step, and print the report."""
    made = asked.client.Evaluation.rescore(
        evaluation_id, verifier, name, pass_threshold=pass_threshold
    )
    if not wait:
        print_started(made.id, made.record, asked.as_json)
        return
    print_report(
        made.wait_until_complete(
            timeout=timeout, poll_interval=0.5, progress=False if asked.as_json else None
        ),
        asked.as_json,
    )


@command(app, "reproduce", "reproduce eval_1", "reproduce eval_1 --timeout 600 --json")
def reproduce(asked: Asked, evaluation_id: EvaluationRef, timeout: Timeout = 3600.0) -> None:
    """Play an evaluation again, and say whether it came out the same, and what changed."""
    found = asked.client.Evaluation.reproduce(evaluation_id, timeout, 0.5)
    if asked.as_json:
        print_json(found)
        return
    _print_reproduction(found)


@command(
    app,
    "judge",
    "judge eval_1 3 --passed --score 0.9 --comments 'All checks were made'",
    "judge eval_1 4 --failed --rater ana",
)
def judge(
    asked: Asked,
    evaluation_id: EvaluationRef,
    episode: Annotated[int, typer.Argument(min=0, help="The episode's number in the report.")],
    passed: Annotated[bool, typer.Option("--passed/--failed", help="Whether it is good enough.")],
    score: Annotated[
        float | None, typer.Option(min=0, max=1, help="How good, from 0 to 1.")
    ] = None,
    comments: Annotated[str | None, typer.Option(help="Why.")] = None,
    rater: Annotated[
        str | None, typer.Option(help="Who says so; by default whoever the key is of.")
    ] = None,
) -> None:
    """Keep what a person says of an episode, beside what verifiers said of it."""
    found = asked.client.Evaluation.get(evaluation_id)
    kept = found.submit_human_eval(
        episode, passed=passed, score=score, comments=comments, rater=rater
    )
    word = "passed" if kept.passed else "failed"
    asked.done(kept, f"{kept.rater} says that episode {kept.episode} {word}")


@command(app, "agreement", "agreement eval_1", "agreement eval_1 --json")
def agreement(asked: Asked, evaluation_id: EvaluationRef) -> None:
    """Show how far people and verifiers say the same: Cohen's kappa with its interval."""
    found = asked.client.Evaluation.get(evaluation_id).get_agreement()
    if asked.as_json:
        print_json(found)
        return
    _print_agreement(found)


@command(app, "events", "events eval_1 --follow --json", "events eval_1 --kind episode")
def events(
    asked: Asked,
    evaluation_id: EvaluationRef,
    kind: Annotated[list[str] | None, typer.Option(help="Only this kind; repeatable.")] = None,
    after: Annotated[int, typer.Option(min=0, help="Begin after the event with this id.")] = 0,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on until the evaluation ends.")
    ] = False,
    timeout: Timeout = _DAY,
) -> None:
    """Print what happened to an evaluation, one event per line; --json makes each an object."""
    from rleaas.cli.commands.events import told

    found = asked.client.Evaluation.get(evaluation_id)
    limit = timeout if follow else 0.0
    asked.stream(found.events(kinds=kind, after=after, timeout=limit), told)


def _print_reproduction(found: Reproduction) -> None:
    print_facts(
        {
            "verdict": found.verdict,
            "original": found.original_id,
            "again": found.reproduction_id,
            "episodes": f"{found.episodes}, {found.episodes_differing} of them differ",
            "overall score": f"{found.overall_score.get('original')} then "
            f"{found.overall_score.get('reproduction')}",
        }
    )
    say("")
    print_table(
        ("changed", "before", "after"),
        [(one["what"], one["before"], one["after"]) for one in found.changes],
        empty="Nothing that it depends on has changed.",
    )


def _print_agreement(found: HumanAgreement) -> None:
    print_facts(
        {
            "evaluation": found.evaluation_id,
            "people": ", ".join(found.raters) or None,
            "judged": f"{found.episodes} episodes, {found.human_evaluations} verdicts",
            "kappa": _kappa(found.machine),
            "difference of scores": found.mean_score_difference,
        }
    )
    say("")
    rows = [(one, kappa.judged, _kappa(kappa)) for one, kappa in found.verifiers.items()]
    print_table(("verifier", "judged", "kappa"), rows, empty="No verifier judged these episodes.")


def _kappa(found: Kappa) -> str | None:
    if found.kappa is None or found.interval is None:
        return None
    low, high = found.interval
    return f"{found.kappa:.3f} [{low:.3f}, {high:.3f}] (95 %)"
