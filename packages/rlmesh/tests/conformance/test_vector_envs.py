"""Vector environments of gymnasium conform; broken ones fail the check that is meant for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorWrapper
from rlmesh.conformance import Report, Verdict

Quick: TypeAlias = Callable[..., Report]
Make: TypeAlias = Callable[[], Any]
MODES = list(AutoresetMode)


def cartpole() -> Any:
    return gym.make("CartPole-v1")


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_lanes_in_one_process_conform(mode: AutoresetMode, quick: Quick) -> None:
    report = quick(lambda: SyncVectorEnv([cartpole] * 3, autoreset_mode=mode))

    assert report.conforms(), "\n".join(map(str, report.failed))
    judged = {name: report[name].verdict for name in ("autoreset", "lane_seeds")}
    assert judged == {"autoreset": Verdict.PASSED, "lane_seeds": Verdict.PASSED}
    assert (report["final_values"].verdict is Verdict.PASSED) == (mode is AutoresetMode.SAME_STEP)
    assert (report["partial_reset"].verdict is Verdict.PASSED) == (mode is AutoresetMode.DISABLED)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_lanes_in_processes_of_their_own_conform(mode: AutoresetMode, quick: Quick) -> None:
    report = quick(lambda: AsyncVectorEnv([cartpole] * 2, autoreset_mode=mode), skip=["threads"])

    assert report.conforms(), "\n".join(map(str, report.failed))
    assert report["autoreset"].verdict is Verdict.PASSED


def test_lanes_with_one_generator_for_all_conform_and_are_noted(quick: Quick) -> None:
    report = quick(lambda: gym.make_vec("CartPole-v1", 2, vectorization_mode="vector_entry_point"))

    assert report.conforms(), "\n".join(map(str, report.failed))
    assert report["lane_seeds"].verdict is Verdict.NOTED
    assert "no seed of their own" in report["lane_seeds"].seen


def test_lanes_that_take_no_list_of_seeds_are_noted(quick: Quick) -> None:
    report = quick(lambda: _altered(NEXT, reset=_no_lists)())

    assert report.conforms(), "\n".join(map(str, report.failed))
    assert report["lane_seeds"].verdict is Verdict.NOTED
    assert "a list of seeds" in report["lane_seeds"].seen


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_lanes_of_dicts_and_text_conform(mode: AutoresetMode, quick: Quick) -> None:
    class Spoken(gym.ObservationWrapper[Any, Any, Any]):
        def __init__(self, env: Any) -> None:
            super().__init__(env)
            self.observation_space = gym.spaces.Dict(
                {"place": env.observation_space, "word": gym.spaces.Text(5)}
            )

        def observation(self, observation: Any) -> Any:
            return {"place": observation, "word": "right" if observation[0] > 0 else "left"}

    report = quick(lambda: SyncVectorEnv([lambda: Spoken(cartpole())] * 2, autoreset_mode=mode))

    assert report.conforms(), "\n".join(map(str, report.failed))


Declared: TypeAlias = AutoresetMode | str | None


def _declared(actual: AutoresetMode, declared: Declared) -> Make:
    def make() -> Any:
        env = SyncVectorEnv([cartpole] * 2, autoreset_mode=actual)
        env.metadata = {**env.metadata, "autoreset_mode": declared}
        return env

    return make


class Altered(VectorWrapper[Any, Any, Any, Any, Any]):
    """A vector environment of which a part of the answers is altered."""

    def __init__(self, env: Any, **alter: Callable[..., Any]) -> None:
        super().__init__(env)
        self._alter = alter

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        if "reset" in self._alter:
            return self._alter["reset"](self.env, seed, options)
        return self.env.reset(seed=seed, options=options)

    def step(self, actions: Any) -> Any:
        answer = self.env.step(actions)
        return self._alter["step"](*answer) if "step" in self._alter else answer


def _altered(mode: AutoresetMode, **alter: Callable[..., Any]) -> Make:
    return lambda: Altered(SyncVectorEnv([cartpole] * 2, autoreset_mode=mode), **alter)


def _without(name: str) -> Callable[..., Any]:
    def step(*answer: Any) -> Any:
        *rest, infos = answer
        return *rest, {key: infos[key] for key in infos if key.lstrip("_") != name}

    return step


def _paid_for_the_reset(*answer: Any) -> Any:
    observations, rewards, *rest = answer
    return observations, np.where(rewards == 0, 0.5, rewards), *rest


def _final_obs_of_the_next_episode(*answer: Any) -> Any:
    observations, *rest, infos = answer
    if "final_obs" in infos:
        observations = observations.copy()
        for lane in np.flatnonzero(infos["_final_obs"]):
            observations[lane] = infos["final_obs"][lane]
    return observations, *rest, infos


def _one_seed_for_all(env: Any, seed: Any, options: Any) -> Any:
    return env.reset(seed=[seed] * 2 if isinstance(seed, int) else seed, options=options)


def _no_lists(env: Any, seed: Any, options: Any) -> Any:
    return env.reset(seed=seed if seed is None else int(seed), options=options)


def _no_masks(env: Any, seed: Any, options: Any) -> Any:
    return env.reset(seed=seed, options=None)


def _lists_of_rewards(*answer: Any) -> Any:
    observations, rewards, *rest = answer
    return observations, list(rewards), *rest


def _numbers_for_flags(*answer: Any) -> Any:
    observations, rewards, terminated, truncated, infos = answer
    return observations, rewards, terminated.astype(int), truncated, infos


def _final_values_of_all_lanes(*answer: Any) -> Any:
    observations, *rest, infos = answer
    if "final_obs" in infos:
        finals = [old if old is not None else observations[0] for old in infos["final_obs"]]
        infos = {**infos, "final_obs": finals, "_final_obs": np.ones(2, bool)}
    return observations, *rest, infos


NEXT, SAME, NONE = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED
BROKEN: dict[str, tuple[str, Make]] = {
    "next step, declared same step": ("autoreset", _declared(NEXT, SAME)),
    "next step, declared disabled": ("autoreset", _declared(NEXT, NONE)),
    "same step, declared next step": ("autoreset", _declared(SAME, NEXT)),
    "same step, declared disabled": ("autoreset", _declared(SAME, "DISABLED")),
    "a reward for the reset": ("autoreset", _altered(NEXT, step=_paid_for_the_reset)),
    "the last observation again": (
        "autoreset",
        _altered(SAME, step=_final_obs_of_the_next_episode),
    ),
    "no final_obs": ("final_values", _altered(SAME, step=_without("final_obs"))),
    "no final_info": ("final_values", _altered(SAME, step=_without("final_info"))),
    "final_obs for all": ("final_values", _altered(SAME, step=_final_values_of_all_lanes)),
    "one seed for all lanes": ("lane_seeds", _altered(NEXT, reset=_one_seed_for_all)),
    "no partial reset": ("partial_reset", _altered(NONE, reset=_no_masks)),
    "lists of rewards": ("reward", _altered(NEXT, step=_lists_of_rewards)),
    "numbers for flags": ("flags", _altered(NEXT, step=_numbers_for_flags)),
}


@pytest.mark.parametrize(("name", "make"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_lanes_fail_their_own_check_and_no_other(
    name: str, make: Make, quick: Quick
) -> None:
    report = quick(make)

    assert [finding.name for finding in report.failed] == [name], "\n".join(map(str, report.failed))


@pytest.mark.parametrize("declared", [None, "sometimes"])
def test_lanes_that_declare_no_autoreset_mode_cannot_be_served_either(
    declared: str | None, quick: Quick
) -> None:
    report = quick(_declared(NEXT, declared))

    assert [finding.name for finding in report.failed] == ["contract", "autoreset"]


def test_lanes_that_do_not_end_are_not_judged_by_their_ends(quick: Quick) -> None:
    report = quick(lambda: gym.make_vec("Pendulum-v1", 2, vectorization_mode="sync"), steps=20)

    assert report["autoreset"].verdict is Verdict.SKIPPED
    assert report["lane_seeds"].verdict is Verdict.PASSED


def test_lanes_render_a_frame_each(quick: Quick) -> None:
    report = quick(
        lambda: SyncVectorEnv([lambda: gym.make("CartPole-v1", render_mode="rgb_array")] * 2)
    )

    assert report["render"].verdict is Verdict.PASSED
