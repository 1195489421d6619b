"""stable-baselines3 alone on the local environment, with the settings and seeds of a job.

The episodes have the seeds that a job gives them, so that it learns the very same: what differs is
how long it takes.
"""

# stable-baselines3 and gymnasium leave their type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false

import time
from collections.abc import Callable, Mapping
from typing import Any, cast

import gymnasium
import numpy as np
import stable_baselines3
import torch
from references import Reference
from rleaas.training.guarded import episode_seed
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.utils import FloatSchedule, LinearSchedule
from stable_baselines3.common.vec_env import DummyVecEnv

Policy = Callable[[Any], Any]


class Seeded(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Gives episodes the seeds of a job."""

    def __init__(self, env: gymnasium.Env[Any, Any], run_seed: int, session: int) -> None:
        super().__init__(env)
        self._of = run_seed, session
        self._episode = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start the next episode, whatever seed is asked for."""
        seed = episode_seed(*self._of, self._episode)
        self._episode += 1
        return self.env.reset(seed=seed, options=options)


class Budget(BaseCallback):
    """Stops where a job would: at the target, or after so many episodes."""

    def __init__(self, reference: Reference) -> None:
        super().__init__()
        self.left = self.episodes = reference.episodes
        self.returns: list[float] = []
        self._target = reference.target
        self._window = min(reference.average_over, reference.episodes)

    def _on_step(self) -> bool:
        return all(self._goes_on(info) for info in self.locals["infos"] if "episode" in info)

    def _goes_on(self, info: Mapping[str, Any]) -> bool:
        self.left -= 1
        self.returns.append(float(info["episode"]["r"]))
        last = self.returns[-self._window :]
        reached = len(last) == self._window and sum(last) / len(last) >= self._target
        return self.left > 0 and not reached


def train(
    reference: Reference, settings: Mapping[str, object], seed: int
) -> tuple[Policy, float, int, list[float]]:
    """The trained policy, the seconds it took, its steps, and the return of each episode."""
    torch.set_num_threads(1)
    told = dict(cast("Mapping[str, Any]", settings))
    sessions = int(told.pop("num_envs"))
    budget = Budget(reference)
    made = DummyVecEnv([_maker(reference, seed, session) for session in range(sessions)])
    rate, schedule = told.pop("learning_rate"), told.pop("learning_rate_schedule")
    if schedule == "linear":
        rate = FloatSchedule(LinearSchedule(rate, 0.0, 1.0))
    noise = told.pop("action_noise", 0.0)
    if noise:
        sides = made.action_space.shape or ()
        told["action_noise"] = NormalActionNoise(
            np.zeros(sides, np.float32), np.full(sides, noise, np.float32)
        )
    algorithm: Any = getattr(stable_baselines3, reference.algorithm)

    def progress(self: Any, *_: int) -> None:
        # Its schedules run with the episodes that are left, as a job's.
        self._current_progress_remaining = budget.left / budget.episodes

    counted: Any = type("Counted", (algorithm,), {"_update_current_progress_remaining": progress})
    model = counted(
        told.pop("policy"),
        made,
        learning_rate=rate,
        policy_kwargs={"net_arch": told.pop("net_arch")},
        seed=seed,
        device="cpu",
        **told,
    )
    started = time.perf_counter()
    model.learn(2**31, callback=budget)
    seconds = time.perf_counter() - started
    return (
        lambda observation: model.predict(observation, deterministic=True)[0],
        seconds,
        model.num_timesteps,
        budget.returns,
    )


def _maker(reference: Reference, seed: int, session: int) -> Callable[[], gymnasium.Env[Any, Any]]:
    def make() -> gymnasium.Env[Any, Any]:
        env = gymnasium.make(
            reference.environment,
            max_episode_steps=reference.max_steps,
            **cast("dict[str, Any]", dict(reference.kwargs)),
        )
        return Monitor(Seeded(env, seed, session))

    return make
