"""What the domain of a built-in world asks of every episode, whoever played and judged it."""

from collections.abc import Callable, Mapping
from functools import cache

from rleaas.evaluation.rollouts import RolloutRecord, trajectory_of
from rleaas.server.rules.worlds import world_of
from rleaas.sims import VERTICALS
from rleaas.verify import Judge, definition_of, judge_of
from rleaas.verify.outcome import judged
from rleaas.verify.verdict import Verdict

Metrics = Callable[[RolloutRecord], Mapping[str, bool]]


def metrics_of(source: str | None) -> Metrics | None:
    """What tells of an episode whether it met each metric; None: the source is no such world.

    What a verifier could not judge is not told, nor what the episode's task was not about.
    """
    vertical = world_of(source)
    if vertical is None:
        return None
    judges, applies = _judges(vertical.name)

    def told(record: RolloutRecord) -> Mapping[str, bool]:
        if record.error is not None or not record.steps:
            return {}
        trajectory = trajectory_of(record)
        verdicts = {
            name: judged(judge, trajectory)
            for name, judge in judges.items()
            if name not in applies or applies[name].judge(trajectory).passed
        }
        return {name: one.passed for name, one in verdicts.items() if isinstance(one, Verdict)}

    return told


@cache
def _judges(vertical: str) -> tuple[Mapping[str, Judge], Mapping[str, Judge]]:
    world = VERTICALS[vertical]
    definitions = {one["id"]: definition_of(one) for one in world.verifiers}
    judges = {
        name: judge_of(definitions[verifier], definitions.__getitem__)
        for name, verifier in world.metrics.items()
    }
    return judges, {name: _condition(said) for name, said in world.applies.items()}


def _condition(said: str) -> Judge:
    return judge_of(definition_of({"type": "rule_based", "logic": {"conditions": [said]}}))
