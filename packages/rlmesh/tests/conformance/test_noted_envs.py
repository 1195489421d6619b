"""What is legal, and worth knowing: it is noted, and fails only where that is asked for."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
import pytest
from rlmesh.conformance import Report, Verdict

Quick: TypeAlias = Callable[..., Report]


class Cart(gym.Wrapper[Any, Any, Any, Any]):
    """A cart pole with a habit."""

    def __init__(self) -> None:
        super().__init__(gym.make("CartPole-v1"))


class TakesAnything(Cart):
    def step(self, action: Any) -> Any:
        return super().step(min(int(action), 1))


class DiesOfAMistake(Cart):
    dead = False

    def reset(self, **arguments: Any) -> Any:
        if self.dead:
            raise RuntimeError("dead")
        return super().reset(**arguments)

    def step(self, action: Any) -> Any:
        self.dead = not self.action_space.contains(action)
        return super().step(action)


class HasAnObjectInItsInfo(Cart):
    def step(self, action: Any) -> Any:
        *rest, _ = super().step(action)
        return *rest, {"engine": {"self": object()}}


class IsReseededByAResetWithoutSeed(Cart):
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        if seed is None:
            self.np_random = np.random.default_rng()
        return super().reset(seed=seed)


class TimesItsSteps(Cart):
    ticks = itertools.count()

    def step(self, action: Any) -> Any:
        *rest, _ = super().step(action)
        return *rest, {"ticks": next(self.ticks)}


class MakesItsActionSpaceAnew(Cart):
    @property
    def action_space(self) -> Any:
        return gym.spaces.Discrete(2)

    @action_space.setter
    def action_space(self, space: Any) -> None:
        raise NotImplementedError


class Warns(Cart):
    def reset(self, **arguments: Any) -> Any:
        gym.logger.warn("the level is old")
        return super().reset(**arguments)


class NeverEnds(Cart):
    def step(self, action: Any) -> Any:
        observation, reward, terminated, _, info = super().step(action)
        if terminated:
            observation, info = super().reset()
        return observation, reward, False, False, info


@pytest.mark.parametrize(
    ("name", "env", "text"),
    [
        ("illegal_action", DiesOfAMistake, "RuntimeError: dead"),
        ("info", HasAnObjectInItsInfo, "$.engine.self"),
        ("unseeded_reset", IsReseededByAResetWithoutSeed, "differently each time"),
        ("infos_repeat", TimesItsSteps, "the infos differ"),
        ("action_space_kept", MakesItsActionSpaceAnew, "a new object each time"),
        ("warnings", Warns, "the level is old"),
        ("episode_end", NeverEnds, "no episode ended within 60 steps"),
    ],
)
def test_what_is_legal_and_odd_is_noted(
    name: str, env: type[Cart], text: str, quick: Quick
) -> None:
    report = quick(env)

    assert report.conforms(), "\n".join(map(str, report.failed))
    assert [finding.name for finding in report.of(Verdict.NOTED)] == [name]
    assert text in report[name].seen


def test_taking_an_illegal_action_is_no_fault_where_a_reset_mends_all(quick: Quick) -> None:
    report = quick(TakesAnything)

    assert report.conforms(strict=True), "\n".join(map(str, report.of(Verdict.NOTED)))
    assert "the action 2 was taken" in report["illegal_action"].seen


def test_what_is_noted_fails_where_that_is_asked_for(quick: Quick) -> None:
    report = quick(NeverEnds)

    assert report.conforms()
    assert not report.conforms(strict=True)
