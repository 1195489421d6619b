"""Worlds: calls per second on one core, and whether GRPO learns FinSim's controls and decisions.

    python benchmarks/worlds.py speed
    python benchmarks/worlds.py learn [seed]

Times are of this process's processor, so that neighbours do not count. What is learned from the
training half of the library is measured on the other half, on organisations' cases of seeds that
no training saw.
"""

# gymnasium leaves its type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

import random
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from rlcore import EnvironmentIdentity
from rleaas.sims import VERTICALS, World, make
from rleaas.sims.discrete import DiscreteWorld
from rleaas.sims.world import ORGANISATIONS
from rleaas.training.config import validate_training_config
from rleaas.training.loaded_policy import open_policy
from rleaas.training.trainer import Progress, TrainingTask, trainer_for
from rleaas.verify import definition_of, judge_of
from rlmesh.runs.statistics import wilson_interval

Policy = Callable[[Any], Any]

EPISODES = 30_000
MAX_STEPS = 40
SETTINGS: Mapping[str, object] = {
    "ent_coef": 0.02,
    "std_normalization": False,
    "groups_per_update": 16,
    "learning_rate_schedule": "linear",
}
"""As wide a look as possible before a decision settles: many starts for each update, and no
group's small differences blown up to its standard deviation."""
UNSEEN = range(10_000, 10_020)


def say(line: str) -> None:
    """Write a line at once, also into a file."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@dataclass
class Last:
    """Keeps the newest checkpoint, and how far the training is."""

    path: Path | None = None
    episodes: int = 0
    returns: list[float] = field(default_factory=list[float])

    def episode_finished(self, progress: Progress) -> None:
        """Tell the mean return every few thousand episodes."""
        self.episodes += 1
        self.returns.append(progress.episode_reward or 0.0)
        if self.episodes % 5_000 == 0:
            say(f"  {self.episodes} episodes: mean return {np.mean(self.returns[-1_000:]):.3f}")

    def update_finished(self, progress: Progress, diagnostics: Mapping[str, float]) -> None:
        """Nobody looks."""

    def log(self, line: str) -> None:
        """Nobody reads."""

    def alert(self, kind: str, data: Mapping[str, object]) -> None:
        """Nobody is alarmed."""

    def checkpoint_saved(
        self, path: Path, label: str, progress: Progress, state: Path | None = None
    ) -> None:
        """Keep it."""
        self.path = path

    def stop_requested(self) -> bool:
        """Never."""
        return False


def world_speed(vertical: str, seconds: float = 2.0, **config: object) -> float:
    """Calls per second of random tools with suggested arguments, resets included."""
    world = World(VERTICALS[vertical], config)
    for number in range(ORGANISATIONS):
        world.reset(number)  # organisations are made once
    names = [tool.name for tool in world.tools]
    rng = random.Random(0)
    calls = episodes = 0
    began = time.process_time()
    while time.process_time() - began < seconds:
        world.reset(episodes)
        episodes += 1
        while not world.over:
            name = names[int(rng.random() * len(names))]
            world.call(name, world.suggested(name))
            calls += 1
    return calls / (time.process_time() - began)


def face_speed(vertical: str, seconds: float = 2.0) -> float:
    """Steps per second of the discrete face under random actions, resets included."""
    env = DiscreteWorld(VERTICALS[vertical])
    count = len(env.world.tools)
    rng = random.Random(0)
    steps = episodes = 0
    began = time.process_time()
    while time.process_time() - began < seconds:
        env.reset(seed=episodes)
        episodes += 1
        over = False
        while not over:
            _, _, terminated, truncated, _ = env.step(np.int64(rng.random() * count))
            over = terminated or truncated
            steps += 1
    return steps / (time.process_time() - began)


def local(session: int) -> gymnasium.Env[Any, Any]:
    """One more session of FinSim, which draws training scenarios only."""
    return make("FinSim")


def learned(seed: int) -> tuple[Policy, float]:
    """The policy after a training, and the processor seconds that it took."""
    with tempfile.TemporaryDirectory(prefix="bench-worlds-") as directory:
        config = validate_training_config("GRPO", EPISODES, MAX_STEPS, {"seed": seed, **SETTINGS})
        task = TrainingTask(
            job_id="worlds",
            config=config,
            seed=seed,
            environment=EnvironmentIdentity("FinSim", None, "sha256:" + "0" * 64),
            make_env=local,
            directory=Path(directory),
        )
        last = Last()
        began = time.process_time()
        trainer_for("GRPO").train(task, last)
        took = time.process_time() - began
        if last.path is None:
            raise RuntimeError("the training saved no checkpoint")
        return open_policy(last.path).predict, took


def measured(policy: Policy, split: str) -> dict[str, tuple[int, int]]:
    """Of all episodes of a half of the library: how many kept the AML control, and succeeded."""
    finsim = VERTICALS["FinSim"]
    env = DiscreteWorld(finsim)
    control = next(one for one in finsim.verifiers if one["id"] == "finsim_aml_check")
    judge = judge_of(definition_of(control))
    played = compliant = right = 0
    for scenario in finsim.scenarios:
        if scenario.split != split:
            continue
        for seed in UNSEEN:
            observation, _ = env.reset(seed=seed, options={"scenario": scenario.id})
            over = False
            while not over:
                observation, _, terminated, truncated, _ = env.step(policy(observation))
                over = terminated or truncated
            played += 1
            compliant += judge.judge(env.world.trajectory()).passed
            right += env.world.succeeded()
    return {"AML compliance": (compliant, played), "decided right": (right, played)}


def show(title: str, found: Mapping[str, tuple[int, int]]) -> None:
    """Print rates with their Wilson intervals."""
    for name, (count, played) in found.items():
        low, high = wilson_interval(count, played)
        say(f"{title}: {name} {count / played:.1%} [{low:.1%}, {high:.1%}] of {played} episodes")


def main(what: str = "speed", seed: str = "0") -> None:
    """Measure the speed of all worlds, or what is learned in one."""
    if what == "speed":
        for name in VERTICALS:
            say(
                f"{name}: {world_speed(name):,.0f} calls/s, "
                f"{world_speed(name, org_size=1_000):,.0f} with 1,000 records, "
                f"{face_speed(name):,.0f} steps/s of the discrete face"
            )
        return
    rng = random.Random(int(seed))
    count = len(VERTICALS["FinSim"].tools)
    show("random, held out", measured(lambda _: np.int64(rng.random() * count), "evaluation"))
    policy, took = learned(int(seed))
    say(f"{EPISODES} episodes in {took:.0f} s of one processor")
    show("learned, training", measured(policy, "training"))
    show("learned, held out", measured(policy, "evaluation"))


if __name__ == "__main__":
    main(*sys.argv[1:])
