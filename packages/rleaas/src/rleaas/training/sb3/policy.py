"""The policy network inside a checkpoint, rebuilt without unpickling anything."""

# stable-baselines3 and gymnasium leave their type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch
from rlcore import ConfigurationError, InvalidObservationError
from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import BasePolicy

from rleaas.training.checkpoint_file import Manifest, read_weights
from rleaas.training.learner_spaces import learner_space, to_environment, to_learner
from rleaas.training.sb3.network import deterministic_network
from rleaas.training.space_json import space_from_json

_ALGORITHMS: Mapping[str, type[BaseAlgorithm]] = {
    "PPO": PPO,
    "A2C": A2C,
    "DQN": DQN,
    "SAC": SAC,
    "TD3": TD3,
    "DDPG": DDPG,
}


def load(manifest: Manifest, path: Path) -> SB3Policy:
    """The policy in a file of the family `sb3`.

    Raises:
        ConfigurationError: the file does not describe its own policy.
    """
    return SB3Policy(manifest, path)


class SB3Policy:
    """A trained network between the environment's observations and its actions."""

    def __init__(self, manifest: Manifest, path: Path) -> None:
        self.manifest = manifest
        try:
            self._observations = space_from_json(manifest.observation_space)
            self._actions = space_from_json(manifest.action_space)
            network = _rebuild(manifest, self._actions)
            network.load_state_dict(read_weights(path))
        except (KeyError, TypeError, ValueError, RuntimeError, AssertionError) as error:
            if isinstance(error, ConfigurationError):
                raise
            raise ConfigurationError(
                f"checkpoint {path.name!r} does not describe its own policy: {error}",
                code="checkpoint_unreadable",
                hint="Download it again, or name another checkpoint",
            ) from error
        network.set_training_mode(False)
        # It stays in that mode. stable-baselines3 would walk all modules to set it at each
        # prediction, a third of the time of a small network.
        cast("Any", network).set_training_mode = _already_set
        self._network = network

    def predict(self, observation: Any) -> Any:  # what the spaces say
        """The best action for one observation.

        Raises:
            InvalidObservationError: it is not of the space that the policy was trained on.
        """
        try:
            seen = to_learner(self._observations, observation)
            action, _ = self._network.predict(seen, deterministic=True)
        except (KeyError, ValueError, TypeError) as error:
            raise InvalidObservationError(
                f"the policy of job {self.manifest.job_id!r} takes observations of "
                f"{self._observations}: {error}",
                hint=f"It was trained on {self.manifest.environment}",
            ) from error
        return to_environment(self._actions, action)

    def network(self) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
        """The network as a function of a batch, and an example of its inputs.

        It maps a batch of `policy_observation_space` to the actions that `predict` takes, as the
        learner counts them: what is squashed or clipped is scaled to the action space's bounds.
        """
        return deterministic_network(self._network)


def _already_set(mode: bool) -> None:
    pass


def _no_rate(remaining: float) -> float:
    return 0.0


class _NoOptimizer:
    """Stands where a network asks for an optimizer: a loaded policy learns no more.

    A real one would import torch's compiler, which takes seconds.
    """

    def __init__(self, parameters: object, **settings: object) -> None:
        pass


def _rebuild(manifest: Manifest, actions: Any) -> BasePolicy:  # a gymnasium space
    # One observation at a time: a second thread only waits for the first.
    torch.set_num_threads(1)
    made = _ALGORITHMS[manifest.algorithm].policy_aliases[manifest.policy]
    build = cast("Any", made)
    network: BasePolicy = build(
        space_from_json(manifest.policy_observation_space),
        learner_space(actions),
        _no_rate,
        optimizer_class=_NoOptimizer,
        **dict(manifest.policy_kwargs),
    )
    return network
