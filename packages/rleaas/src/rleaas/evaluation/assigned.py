"""The work of an evaluation as its assignment has it: what is played, and who judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from rlcore import IdentityError

from rleaas.evaluation.plans import EpisodePlan, episode_plans
from rleaas.evaluation.scoring import ScoreKind, Scoring
from rleaas.training.assignment import EvaluationAssignment
from rleaas.training.rewards.verified_env import verifiers_of
from rleaas.training.scenarios import Scenario, scenarios_of
from rleaas.verify import WeightedVerifier
from rleaas.verify.episode import action_names

_SPACES = ("observation_space", "action_space")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What an evaluation is made of.

    Attributes:
        plans: its episodes.
        scenarios: what they are of, by id; empty: of nothing in particular.
        scoring: who judges them.
        known: of each verifier its name, its version and whether it was audited.
        action_names: what the numbers of actions mean.
    """

    plans: tuple[EpisodePlan, ...]
    scenarios: Mapping[str, Scenario]
    scoring: Scoring
    known: Mapping[str, Mapping[str, object]]
    action_names: Mapping[int, str]


def work_of(assignment: EvaluationAssignment) -> Work:
    """What an assignment asks for.

    Raises:
        ConfigurationError: a verifier or a scenario is written wrongly.
    """
    scenarios: Sequence[Scenario] = (
        scenarios_of(assignment.scenarios).all if assignment.scenarios else ()
    )
    by_id = {one.id: one for one in scenarios}
    judges = assignment.verifiers or {}
    everybody = _judges(judges.get("everybody"), judges.get("judge_at"))
    of_scenarios = {
        scenario_id: _judges(given, judges.get("judge_at"))
        for scenario_id, given in _object(judges.get("of_scenarios")).items()
    }
    kind: ScoreKind = "success" if scenarios else "return"
    return Work(
        plans=episode_plans(
            assignment.seeds,
            scenarios=scenarios,
            repetitions=assignment.repetitions,
            seeding=assignment.seeding,
        ),
        scenarios=by_id,
        scoring=Scoring(
            kind="verifiers" if everybody or of_scenarios else kind,
            verifiers=everybody,
            of_scenarios=of_scenarios,
            scenarios=by_id,
            pass_threshold=assignment.pass_threshold,
        ),
        known=cast("Mapping[str, Mapping[str, object]]", _object(judges.get("known"))),
        action_names=_action_names(assignment.contract or {}),
    )


def require_contract(assignment: EvaluationAssignment) -> None:
    """Refuse an environment in which the checkpoint cannot act as it learned to.

    Raises:
        IdentityError: its spaces are not those that the checkpoint was trained on.
    """
    trained, now = assignment.trained_contract, assignment.contract
    if trained is None or now is None:
        return
    for what in _SPACES:
        if trained.get(what) != now.get(what):
            raise IdentityError(
                f"{assignment.environment.name}@{assignment.environment.version} has another "
                f"{what} than the checkpoint was trained on",
                expected=assignment.trained_contract_digest,
                actual=assignment.environment.contract_digest,
                code="contract_changed",
                hint="Evaluate on the version that it was trained on, or train it anew",
            )


def _judges(given: object, judge_at: object) -> tuple[WeightedVerifier, ...]:
    # The server judges by those that ask a language model.
    group = {**_object(given), "judge_at": judge_at}
    found = verifiers_of(group) if given else ()
    return tuple(WeightedVerifier(one.id, one.weight, one.judge) for one in found)


def _object(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def _action_names(contract: Mapping[str, object]) -> dict[int, str]:
    space = _object(contract.get("action_space"))
    start = _object(space.get("details")).get("start")
    return action_names(_object(contract.get("metadata")), start if isinstance(start, int) else 0)
