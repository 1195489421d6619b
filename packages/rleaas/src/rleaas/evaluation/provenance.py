"""What is needed to make an evaluation again, and what changed between two of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from rlmesh.runs.provenance import machine, package_versions

from rleaas.evaluation.assigned import Work
from rleaas.training.assignment import EvaluationAssignment

COMPARED: Final = (
    "environment",
    "checkpoint_id",
    "checkpoint_sha256",
    "agent",
    "suite",
    "scenarios",
    "seeds",
    "repetitions",
    "seeding",
    "verifiers",
    "settings",
    "package_versions",
)


def provenance_of(assignment: EvaluationAssignment, work: Work) -> dict[str, object]:
    """Where the numbers of an evaluation come from."""
    given = assignment.scenarios or {}
    checkpoint = assignment.checkpoint
    return {
        "environment": assignment.environment.identity.to_dict(),
        "checkpoint_id": None if checkpoint is None else checkpoint.id,
        "checkpoint_sha256": None if checkpoint is None else checkpoint.sha256,
        "agent": _agent(assignment.agent),
        "source_evaluation_id": assignment.source_evaluation_id,
        "suite": None
        if given.get("suite_id") is None
        else {"id": given["suite_id"], "version": given.get("suite_version")},
        "scenarios": {one.id: one.version for one in work.scenarios.values()},
        "seeds": list(assignment.seeds),
        "repetitions": assignment.repetitions,
        "seeding": assignment.seeding,
        "verifiers": {one: facts.get("version") for one, facts in work.known.items()},
        "settings": {
            "max_episode_steps": assignment.max_episode_steps,
            "success_threshold": assignment.success_threshold,
            "pass_threshold": assignment.pass_threshold,
        },
        "package_versions": dict(package_versions()),
        "machine": dict(machine()),
    }


def _agent(agent: str | Mapping[str, object] | None) -> object:
    """Who played: a word, or what a language model was asked where and how."""
    if not isinstance(agent, Mapping):
        return agent
    return {key: value for key, value in agent.items() if key != "endpoint"}


def changes(before: Mapping[str, object], after: Mapping[str, object]) -> list[dict[str, object]]:
    """What differs between the provenance of two evaluations: `what`, `before` and `after`."""
    found: list[dict[str, object]] = []
    for name in COMPARED:
        found += _changes(name, before.get(name), after.get(name))
    return found


def differing_episodes(
    before: Sequence[Mapping[str, object]], after: Sequence[Mapping[str, object]]
) -> list[dict[str, object]]:
    """The episodes of which two evaluations say something else, and what."""
    theirs = {_pair(one): one for one in after}
    found: list[dict[str, object]] = []
    for one in before:
        other = theirs.pop(_pair(one), None)
        said = ("outcome", "steps", "reward", "score", "passed")
        differs = [name for name in said if other is None or one.get(name) != other.get(name)]
        if differs:
            found.append({**_named(one), "differs": differs, "before": one, "after": other})
    found += [
        {**_named(one), "differs": ["missing"], "before": None, "after": one}
        for one in theirs.values()
    ]
    return found


def _changes(what: str, before: object, after: object) -> list[dict[str, object]]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        one, other = cast("Mapping[str, object]", before), cast("Mapping[str, object]", after)
        return [
            change
            for key in sorted({*one, *other})
            for change in _changes(f"{what}.{key}", one.get(key), other.get(key))
        ]
    return [] if before == after else [{"what": what, "before": before, "after": after}]


def _pair(one: Mapping[str, object]) -> tuple[object, ...]:
    return one.get("scenario_id"), one.get("seed"), one.get("repetition", 0)


def _named(one: Mapping[str, object]) -> dict[str, object]:
    scenario, seed, repetition = _pair(one)
    return {"scenario_id": scenario, "seed": seed, "repetition": repetition}
