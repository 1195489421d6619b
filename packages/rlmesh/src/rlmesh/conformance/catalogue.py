"""The checks, by name, in the order of the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, Literal

from rlcore import ConfigurationError

from rlmesh.conformance import (
    habit_checks,
    lane_checks,
    play_checks,
    render_checks,
    seed_checks,
    served_checks,
)
from rlmesh.conformance.evidence import Evidence
from rlmesh.conformance.verdicts import Finding

Kind = Literal["all", "local", "lanes", "served"]


@dataclass(frozen=True, slots=True)
class Check:
    """One check.

    Attributes:
        judge: what gives the finding; its docstring says what is checked.
        kind: the environments that it is about.
    """

    judge: Callable[[Evidence], Finding]
    kind: Kind = "all"

    @property
    def promise(self) -> str:
        """What holds where the check passes."""
        return (self.judge.__doc__ or "").strip().splitlines()[0]


CHECKS: Final[dict[str, Check]] = {
    "contract": Check(habit_checks.contract),
    "metadata": Check(habit_checks.metadata),
    "action_space_kept": Check(habit_checks.action_space_kept, "local"),
    "plays": Check(play_checks.plays),
    "answers": Check(play_checks.answers),
    "observations": Check(play_checks.observations),
    "observation_kept": Check(play_checks.observation_kept),
    "action_kept": Check(play_checks.action_kept, "local"),
    "reward": Check(play_checks.reward),
    "flags": Check(play_checks.flags),
    "info": Check(play_checks.info),
    "episode_end": Check(play_checks.episode_end),
    "made_again": Check(habit_checks.made_again),
    "seed_honoured": Check(seed_checks.seed_honoured),
    "seeds_differ": Check(seed_checks.seeds_differ),
    "second_episode": Check(seed_checks.second_episode),
    "unseeded_reset": Check(seed_checks.unseeded_reset),
    "infos_repeat": Check(seed_checks.infos_repeat),
    "reset_options": Check(habit_checks.reset_options),
    "after_end": Check(habit_checks.after_end),
    "illegal_action": Check(habit_checks.illegal_action),
    "render": Check(render_checks.render),
    "close": Check(habit_checks.close),
    "autoreset": Check(lane_checks.autoreset, "lanes"),
    "final_values": Check(lane_checks.final_values, "lanes"),
    "lane_seeds": Check(lane_checks.lane_seeds, "lanes"),
    "partial_reset": Check(lane_checks.partial_reset, "lanes"),
    "threads": Check(seed_checks.threads),
    "other_thread": Check(seed_checks.other_thread, "local"),
    "processes": Check(seed_checks.processes, "local"),
    "digest_stable": Check(served_checks.digest_stable, "served"),
    "values_survive": Check(served_checks.values_survive, "served"),
    "latency": Check(play_checks.latency, "served"),
    "warnings": Check(habit_checks.warnings),
    "in_time": Check(habit_checks.in_time),
}


def selected(only: Iterable[str], skip: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the checks to perform: those of `only`, or all, without those of `skip`.

    Raises:
        ConfigurationError: there is no check of a name, or none is left.
    """
    wanted, unwanted = set(only), set(skip)
    for name in (*wanted, *unwanted):
        if name not in CHECKS:
            near = get_close_matches(name, CHECKS, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(CHECKS)}."
            raise ConfigurationError(f"there is no check {name!r}", hint=hint)
    left = tuple(name for name in CHECKS if (not wanted or name in wanted) and name not in unwanted)
    if not left:
        raise ConfigurationError("no check is left to perform", hint="Leave out fewer of them.")
    return left
