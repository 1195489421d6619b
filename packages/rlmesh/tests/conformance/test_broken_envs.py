"""Each environment breaks one promise, and fails the check that is meant for it and no other."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import gymnasium as gym
import numpy as np
import pytest
from rlmesh.conformance import Report, Verdict

Quick: TypeAlias = Callable[..., Report]
E = TypeVar("E", bound="type[Walk]")
BREAKS: list[tuple[str, type[Walk]]] = []
LIMIT = 25
PARTS = ("observation", "reward", "terminated", "truncated", "info")


class Walk(gym.Env[Any, Any]):
    """A random walk on a line between two walls, with wind."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 - gymnasium's own way

    def __init__(self, render_mode: str | None = None) -> None:
        self.observation_space = gym.spaces.Box(-6.0, 6.0, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(3)
        self.render_mode = render_mode
        self.position = np.zeros(2, np.float32)
        self.steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.position = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        self.steps = 0
        return self.position.copy(), {"steps": 0}

    def step(self, action: Any) -> Any:
        if not self.action_space.contains(action):
            raise ValueError(f"no action {action!r}")
        self.steps += 1
        self.position[0] += int(action) - 1 + self.np_random.uniform(-0.5, 0.5)
        np.clip(self.position, -6, 6, out=self.position)
        terminated = bool(abs(self.position[0]) > 3)
        truncated = self.steps >= LIMIT
        return self.position.copy(), 1.0, terminated, truncated, {"steps": self.steps}

    def render(self) -> Any:
        return np.full((4, 6, 3), self.steps, np.uint8)


class Altered(Walk):
    """Replaces parts of what step returns."""

    def altered(self) -> dict[str, object]:
        raise NotImplementedError

    def step(self, action: Any) -> Any:
        answer = dict(zip(PARTS, super().step(action), strict=True))
        return tuple({**answer, **self.altered()}.values())


class AtHome(Walk):
    """Stays in the thread that made it."""

    def __init__(self) -> None:
        super().__init__()
        self.home = threading.get_ident()

    def step(self, action: Any) -> Any:
        if threading.get_ident() != self.home:
            raise RuntimeError("a window belongs to the thread that opened it")
        return super().step(action)


def breaks(check: str) -> Callable[[E], E]:
    """Name the check that an environment is to fail."""

    def add(env: E) -> E:
        BREAKS.append((check, env))
        return env

    return add


@breaks("seed_honoured")
class DrawsFromEntropy(Walk):
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed=None, options=options)


@breaks("seed_honoured")
class HasWindFromTheGlobalGenerator(Walk):
    def step(self, action: Any) -> Any:
        observation, _, *rest = super().step(action)
        return observation, float(np.random.rand()), *rest


class Anything(gym.spaces.Space[Any]):
    def contains(self, x: Any) -> bool:
        return x is not None


@breaks("contract")
class HasASpaceOfItsOwn(Walk):
    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(render_mode)
        self.observation_space = Anything()


@breaks("contract")
class SaysThatItResetsWithinAStep(Walk):
    metadata = {**Walk.metadata, "autoreset_mode": "SameStep"}  # noqa: RUF012 - as above


@breaks("action_kept")
class OverwritesItsAction(Walk):
    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(render_mode)
        self.action_space = gym.spaces.Box(0.5, 1.0, (1,), np.float32)

    def step(self, action: Any) -> Any:
        if not self.action_space.contains(action):
            raise ValueError(f"no action {action!r}")
        self.action_space, whole = gym.spaces.Discrete(3), self.action_space
        answer = super().step(2)
        self.action_space = whole
        action *= 0
        return answer


@breaks("action_space_kept")
class HasAnotherActionSpaceEachTime(Walk):
    @property
    def action_space(self) -> Any:
        self.asked = getattr(self, "asked", 2) + 1
        return gym.spaces.Discrete(self.asked)

    @action_space.setter
    def action_space(self, space: Any) -> None:
        pass

    def step(self, action: Any) -> Any:
        self.steps += 1
        truncated = self.steps >= LIMIT
        return self.position.copy(), 1.0, False, truncated, {"steps": self.steps}


@breaks("render")
class DrawsInFloats(Walk):
    def render(self) -> Any:
        return super().render() / 255


@breaks("seeds_differ")
class HasOneSeedOfItsOwn(Walk):
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed=7, options=options)


@breaks("second_episode")
class HasWindThatOutlivesEpisodes(Walk):
    wind = 0.0

    def step(self, action: Any) -> Any:
        self.wind = self.wind + 0.001
        observation, _, *rest = super().step(action)
        return observation, self.wind, *rest


@breaks("reset_options")
class TakesNoOptions(Walk):
    def reset(self, *, seed: int | None = None) -> Any:  # type: ignore[override]  # the point
        return super().reset(seed=seed)


@breaks("reset_options")
class StartsOtherwiseWithOptions(Walk):
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed=seed if options is None else 99)


@breaks("unseeded_reset")
class WantsASeed(Walk):
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        if seed is None:
            raise ValueError("no seed")
        return super().reset(seed=seed)


@breaks("observations")
class ReturnsDoubles(Walk):
    def step(self, action: Any) -> Any:
        observation, *rest = super().step(action)
        return observation.astype(np.float64), *rest


@breaks("observations")
class ReturnsAColumnAtReset(Walk):
    def reset(self, **arguments: Any) -> Any:
        observation, info = super().reset(**arguments)
        return observation.reshape(2, 1), info


@breaks("observations")
class LeavesItsSpaceLateInAnEpisode(Walk):
    def step(self, action: Any) -> Any:
        observation, *rest = super().step(action)
        return observation + np.float32(10 * (self.steps > 5)), *rest


@breaks("observations")
class ReturnsLists(Walk):
    def step(self, action: Any) -> Any:
        observation, *rest = super().step(action)
        return observation.tolist(), *rest


@breaks("observation_kept")
class ReturnsItsOwnArray(Walk):
    def step(self, action: Any) -> Any:
        _, *rest = super().step(action)
        return self.position, *rest


@breaks("observation_kept")
class AlternatesBetweenTwoBuffers(Walk):
    def __init__(self) -> None:
        super().__init__()
        self.buffers = np.zeros((2, 2), np.float32)

    def step(self, action: Any) -> Any:
        observation, *rest = super().step(action)
        buffer = self.buffers[self.steps % 2]
        buffer[:] = observation
        return buffer, *rest


@breaks("reward")
class RewardsWithNan(Altered):
    def altered(self) -> dict[str, object]:
        return {"reward": float("nan") if self.steps == 3 else 1.0}


@breaks("reward")
class RewardsWithAnArray(Altered):
    def altered(self) -> dict[str, object]:
        return {"reward": np.ones(1)}


@breaks("flags")
class FlagsWithNumbers(Altered):
    def altered(self) -> dict[str, object]:
        return {"truncated": int(self.steps >= 20)}


@breaks("info")
class HasNoInfo(Altered):
    def altered(self) -> dict[str, object]:
        return {"info": None}


@breaks("info")
class HasNumbersForKeys(Altered):
    def altered(self) -> dict[str, object]:
        return {"info": {1: 2}}


@breaks("answers")
class ResetsToTheObservationAlone(Walk):
    def reset(self, **arguments: Any) -> Any:
        return super().reset(**arguments)[0]


@breaks("answers")
class StepsAsGymDid(Walk):
    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated or truncated, info


@breaks("plays")
class RefusesALegalAction(Walk):
    def step(self, action: Any) -> Any:
        if action == 2 and self.steps > 4:
            raise RuntimeError("two is too much")
        return super().step(action)


@breaks("after_end")
class CannotBeResetAfterAStepBeyondTheEnd(Walk):
    ended = dead = False

    def reset(self, **arguments: Any) -> Any:
        if self.dead:
            raise RuntimeError("dead")
        self.ended = False
        return super().reset(**arguments)

    def step(self, action: Any) -> Any:
        self.dead = self.ended
        answer = super().step(action)
        self.ended = answer[2] or answer[3]
        return answer


@breaks("after_end")
class DeclaresNextStepAutoresetAndHasNone(Walk):
    metadata = {**Walk.metadata, "autoreset_mode": "NextStep"}  # noqa: RUF012


@breaks("render")
class RendersFloats(Walk):
    def __init__(self) -> None:
        super().__init__(render_mode="rgb_array")

    def render(self) -> Any:
        return super().render() / 255


@breaks("render")
class RendersNothingItCould(Walk):
    def __init__(self) -> None:
        super().__init__(render_mode="rgb_array")

    def render(self) -> Any:
        raise NotImplementedError


@breaks("metadata")
class RendersInAWayItDoesNotDeclare(Walk):
    def __init__(self) -> None:
        super().__init__(render_mode="human")

    def render(self) -> Any:
        return None


@breaks("metadata")
class HasNoSpeed(Walk):
    metadata = {**Walk.metadata, "render_fps": "fast"}  # noqa: RUF012


@breaks("close")
class ClosesOnce(Walk):
    closed = False

    def close(self) -> None:
        if self.closed:
            raise RuntimeError("closed before")
        self.closed = True


@breaks("made_again")
class TakesWhatItDoesNotGiveBack(Walk):
    made = 0

    def __init__(self) -> None:
        type(self).made += 1
        if self.made > 1:
            raise OSError("the port is taken")
        super().__init__()


@breaks("threads")
class KeepsItsStepsInTheClass(Walk):
    taken = 0

    def reset(self, **arguments: Any) -> Any:
        type(self).taken = 0
        return super().reset(**arguments)

    def step(self, action: Any) -> Any:
        type(self).taken += 1
        observation, _, *rest = super().step(action)
        return observation, float(self.taken), *rest


@breaks("other_thread")
class SaysItCanMoveAndCannot(AtHome):
    metadata = {**Walk.metadata, "thread_bound": False}  # noqa: RUF012


@pytest.mark.parametrize(("name", "env"), BREAKS, ids=lambda part: getattr(part, "__name__", part))
def test_a_broken_promise_fails_its_own_check_and_no_other(
    name: str, env: type[Walk], quick: Quick
) -> None:
    report = quick(env)

    assert [finding.name for finding in report.failed] == [name], "\n".join(map(str, report.failed))
    assert report[name].seen
    assert report[name].fix
    assert not report.conforms()


def test_the_environment_that_all_of_them_break_conforms(quick: Quick) -> None:
    report = quick(lambda: Walk(render_mode="rgb_array"))

    assert report.conforms(strict=True), str(report)
    assert report.counts()["skipped"] == 1  # no other process can make what a lambda makes
    assert report["processes"].verdict is Verdict.SKIPPED


@pytest.mark.parametrize("where", ["make", "reset", "step", "close", "render"])
def test_a_call_that_hangs_fails_in_time_and_is_named(
    where: str, quick: Quick, gate: threading.Event
) -> None:
    class Env(Walk):
        def __init__(self) -> None:
            super().__init__(render_mode="rgb_array")
            self.wait("make")

        def wait(self, call: str) -> None:
            if call == where:
                gate.wait(30)

        def reset(self, **arguments: Any) -> Any:
            self.wait("reset")
            return super().reset(**arguments)

        def step(self, action: Any) -> Any:
            answer = super().step(action)
            if self.steps == 4:
                self.wait("step")
            return answer

        def close(self) -> None:
            self.wait("close")

        def render(self) -> Any:
            self.wait("render")
            return super().render()

    report = quick(Env, timeout=1.0)

    assert [finding.name for finding in report.failed] == ["in_time"]
    said = {"make": "making the environment", "reset": "reset(seed=0)", "step": "step 4 after"}
    assert said.get(where, f"{where}()") in report["in_time"].seen
    skipped = {finding.name for finding in report.of(Verdict.SKIPPED)}
    assert {"make": "reward", "reset": "reward", "step": "reward"}.get(where, "threads") in skipped


def test_another_process_that_plays_otherwise_fails_processes(
    tmp_path: Path, quick: Quick, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hashing_walk.py").write_text(
        "import gymnasium as gym\n"
        "class Env(gym.Env):\n"
        "    observation_space = gym.spaces.Discrete(9)\n"
        "    action_space = gym.spaces.Discrete(2)\n"
        "    def reset(self, *, seed=None, options=None):\n"
        "        super().reset(seed=seed)\n"
        "        return int(self.np_random.integers(9)), {}\n"
        "    def step(self, action):\n"
        "        return int(self.np_random.integers(9)), hash('wind') / 2**64, False, False, {}\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    report = quick("hashing_walk:Env")

    assert [finding.name for finding in report.failed] == ["processes"]


def test_what_cannot_be_made_in_another_process_fails_processes(
    tmp_path: Path, quick: Quick, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "parental_walk.py").write_text(
        "import sys\n"
        "import gymnasium as gym\n"
        "def make():\n"
        "    if 'pytest' not in sys.modules:\n"
        "        raise OSError('there is no parent here')\n"
        "    return gym.make('FrozenLake-v1')\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    report = quick("parental_walk:make", only=["processes", "plays"])

    assert [finding.name for finding in report.failed] == ["processes"]
    assert "there is no parent here" in report["processes"].seen


def test_an_environment_that_stays_where_it_was_made_is_noted(quick: Quick) -> None:
    report = quick(AtHome)

    assert report.conforms()
    assert not report.conforms(strict=True)
    assert report["other_thread"].verdict is Verdict.NOTED
    assert '"thread_bound": True' in report["other_thread"].fix


def test_an_environment_that_says_so_may_stay_where_it_was_made(quick: Quick) -> None:
    class Env(AtHome):
        metadata = {**Walk.metadata, "thread_bound": True}  # noqa: RUF012

    assert quick(Env)["other_thread"].verdict is Verdict.SKIPPED


def test_a_finding_says_how_to_get_there_again(quick: Quick) -> None:
    place = quick(RewardsWithNan)["reward"].place
    assert place is not None

    env = RewardsWithNan()
    space = env.action_space
    space.seed(place.action_seed)
    env.reset(seed=place.seed)
    rewards = [env.step(space.sample())[1] for _ in range(place.step)]

    assert np.isnan(rewards[-1])
    assert not np.isnan(rewards[:-1]).any()
