"""The policy in a checkpoint of our own trainers, rebuilt from its manifest."""

# gymnasium leaves its type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from rlcore import ConfigurationError, InvalidObservationError
from torch import Tensor, nn

from rleaas.training.actor.network import ActorNetwork
from rleaas.training.checkpoint_file import Manifest, read_weights
from rleaas.training.learner_spaces import learner_space, to_environment, to_learner
from rleaas.training.space_json import space_from_json


class ActorPolicy:
    """A trained network between the environment's observations and its actions."""

    def __init__(self, manifest: Manifest, path: Path) -> None:
        self._manifest = manifest
        # One observation at a time: a second thread only waits for the first.
        torch.set_num_threads(1)
        try:
            self._observations = space_from_json(manifest.observation_space)
            self._actions = space_from_json(manifest.action_space)
            network = ActorNetwork(
                learner_space(self._observations),
                learner_space(self._actions),
                net_arch_of(manifest),
            )
        except (KeyError, TypeError, ValueError, AssertionError) as error:
            raise ConfigurationError(
                f"checkpoint {path.name!r} does not describe its own policy: {error}",
                code="checkpoint_unreadable",
                hint="Download it again, or name another checkpoint",
            ) from error
        load_policy_weights(network, path)
        self._network = network.eval()

    @property
    def manifest(self) -> Manifest:
        """What the file says about itself."""
        return self._manifest

    def predict(self, observation: Any) -> Any:  # what the spaces say
        """The best action for one observation of the environment.

        Raises:
            InvalidObservationError: it is not of the space that the policy was trained on.
        """
        try:
            seen = self._network.observations.stack([to_learner(self._observations, observation)])
            with torch.inference_mode():
                best = self._network.actions.best(self._network(seen))
                action = self._network.actions.to_learner(best)[0].numpy()
        except (KeyError, IndexError, ValueError, TypeError, RuntimeError) as error:
            raise InvalidObservationError(
                f"the policy of job {self._manifest.job_id!r} takes observations of "
                f"{self._observations}: {error}",
                hint=f"It was trained on {self._manifest.environment}",
            ) from error
        return to_environment(self._actions, action)

    def network(self) -> tuple[nn.Module, dict[str, Tensor]]:
        """The network and an example of its inputs, in the order of its arguments."""
        return BestActions(self._network), self._network.observations.example(2)


class BestActions(nn.Module):
    """A batch of learner observations to the learner's best actions; an argument for each input."""

    def __init__(self, network: ActorNetwork) -> None:
        super().__init__()
        self._network = network

    def forward(self, *inputs: Tensor) -> Tensor:
        """The actions."""
        named = dict(zip(self._network.encoder.names, inputs, strict=True))
        actions = self._network.actions
        return actions.to_learner(actions.best(self._network(named)))


def policy_weights(network: ActorNetwork) -> dict[str, Tensor]:
    """The tensors of what acts: all but the critic's."""
    return {
        name: tensor
        for name, tensor in network.state_dict().items()
        if not name.startswith("critic.")
    }


def load_policy_weights(network: ActorNetwork, path: Path) -> None:
    """Read what acts out of a checkpoint; a critic that the network has stays as it is.

    Raises:
        ConfigurationError: the file's weights are not of this network.
    """
    weights = read_weights(path)
    expected = policy_weights(network)
    shapes = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    wanted = {name: tuple(tensor.shape) for name, tensor in expected.items()}
    if shapes != wanted:
        differing = sorted(
            name for name in {*shapes, *wanted} if shapes.get(name) != wanted.get(name)
        )
        raise ConfigurationError(
            f"checkpoint {path.name!r} does not fit the policy: they differ in {differing[0]}",
            code="checkpoint_incompatible",
            hint="Resume with the net_arch and the spaces that it was trained with",
        )
    network.load_state_dict(weights, strict=False)


def net_arch_of(manifest: Manifest) -> tuple[int, ...]:
    """The widths of the network's layers.

    Raises:
        KeyError, TypeError, ValueError: the manifest says none.
    """
    widths = cast("Mapping[str, Sequence[Any]]", manifest.network)["net_arch"]
    return tuple(int(width) for width in widths)
