# gymnasium leaves its type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from rlcore import SessionBusy
from rleaas.training.a3c.actor_process import Actor, Counters, Role
from rleaas.training.a3c.crew import actor_context
from rleaas.training.a3c.messages import EpisodeOver, Learned, Opened
from rleaas.training.a3c.settings import Settings
from rleaas.training.a3c.shared_weights import SharedWeights
from rleaas.training.actor.checkpoints import build_network
from torch import nn


class Signs(gymnasium.Env[Any, Any]):
    """Shows one of two signs four times; the reward is 1 for the arm that the sign means."""

    observation_space = spaces.Discrete(2)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._left = 4
        self._sign = int(self.np_random.integers(2))
        return self._sign, {}

    def step(self, action: Any) -> Any:
        reward = float(action == self._sign)
        self._left -= 1
        self._sign = int(self.np_random.integers(2))
        return self._sign, reward, self._left == 0, False, {"success": reward > 0, "big": [0] * 99}


def role(**changed: Any) -> Role:
    settings = Settings(learning_rate=0.02, t_max=8, **changed)
    network = build_network(
        Signs.observation_space, Signs.action_space, settings.net_arch, critic=True, seed=1
    )
    return Role(
        number=0,
        sessions=2,
        make_env=lambda session: Signs(),
        environment="Signs",
        max_steps=10,
        run_seed=1,
        attempt_seed=1,
        begun=0,
        played=0,
        budget=300,
        done=0,
        settings=settings,
        weights=SharedWeights(network, optimizer=settings.optimizer, epsilon=1e-5),
        counters=Counters.of(1),
    )


def play(one: Role, episodes: int) -> list[Any]:
    """What an actor tells until so many episodes are over, in this process."""
    torch.set_num_threads(1)
    told: list[Any] = []

    def tell(message: Any) -> None:
        told.append(message)
        if int(one.counters.episodes.sum()) >= episodes:
            one.counters.stop[0] = 1

    Actor(one, tell).run()
    return told


@pytest.mark.parametrize(
    "changed",
    [{}, {"optimizer": "adam", "epsilon": 1e-8}, {"linear": True, "ent_coef": 0.001}],
    ids=["RMSprop", "Adam", "linear"],
)
def test_an_actor_learns(changed: Any) -> None:
    one = role(**changed)
    told = play(one, 300)

    rewards = [message.reward for message in told if isinstance(message, EpisodeOver)]
    # By chance half of the four steps is right.
    assert np.mean(rewards[:10]) < 3
    assert np.mean(rewards[-30:]) > 3.5
    assert one.weights.updates > 50


def test_what_an_actor_tells() -> None:
    one = role()
    told = play(one, 20)

    assert told[0] == Opened(2)
    over = [message for message in told if isinstance(message, EpisodeOver)]
    assert {message.length for message in over} == {4}
    # What nobody counts stays in the actor's process.
    assert {tuple(message.info) for message in over} == {("success",)}
    assert over[-1].steps == 80
    assert not [message for message in told if isinstance(message, Learned)]


def test_an_actor_without_room_leaves() -> None:
    def refuse(session: int) -> Any:
        raise SessionBusy("taken")

    assert play(replace(role(), make_env=refuse), 1) == [Opened(0)]


def test_weights_that_are_no_numbers_end_an_actor() -> None:
    one = role()
    one.weights.vector.fill_(float("nan"))

    with pytest.raises(FloatingPointError):
        Actor(one, [].append).run()


def push(shared: SharedWeights, own: int, begin: Any) -> None:
    """Move one weight until the other process has moved the other one too."""
    torch.set_num_threads(1)
    gradient = torch.zeros(2)
    gradient[own] = -1.0
    begin.wait()
    for _ in range(10**6):
        shared.apply(gradient, 1e-3)
        if (shared.vector > 0.05).all():
            return
    raise SystemExit(1)


@pytest.mark.timeout(240)  # a process imports torch
@pytest.mark.parametrize("locked", [False, True], ids=["Hogwild", "lock"])
def test_two_processes_step_the_same_weights_at_the_same_time(locked: bool) -> None:
    context = actor_context()
    shared = SharedWeights(
        nn.Linear(1, 1),
        optimizer="rmsprop",
        epsilon=1e-5,
        lock=context.Lock() if locked else None,
    )
    shared.vector.zero_()
    begin = context.Barrier(2)
    processes = [context.Process(target=push, args=(shared, i, begin)) for i in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()

    # Each went on until it saw what the other had done to the same memory.
    assert [process.exitcode for process in processes] == [0, 0]
    assert (shared.vector > 0.05).all()
    assert shared.updates > 2
