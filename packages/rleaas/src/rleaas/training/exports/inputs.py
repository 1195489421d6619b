"""Observations as the inputs of an exported network, and its outputs as actions."""

# gymnasium leaves its type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

from rleaas.training.checkpoint_file import Manifest
from rleaas.training.learner_spaces import to_environment, to_learner
from rleaas.training.space_json import space_from_json

if TYPE_CHECKING:
    import torch


class NetworkInputs:
    """Between one environment and one network.

    Args:
        manifest: whose spaces they are.
        example: the network's inputs by name.
    """

    def __init__(self, manifest: Manifest, example: Mapping[str, torch.Tensor]) -> None:
        self.observations = space_from_json(manifest.observation_space)
        self.actions = space_from_json(manifest.action_space)
        self._example = {name: tensor.numpy() for name, tensor in example.items()}

    def encoded(self, observation: Any) -> dict[str, np.ndarray[Any, Any]]:  # what the space says
        """One observation of the environment as a batch of one."""
        seen = to_learner(self.observations, observation)
        if not isinstance(self.observations, spaces.Dict):
            seen = {next(iter(self._example)): seen}
        return {
            name: _shaped(np.asarray(seen[name]), example)
            for name, example in self._example.items()
        }

    def decoded(self, action: np.ndarray[Any, Any]) -> Any:  # what the space says
        """One row of the network's output as an action of the environment."""
        return to_environment(self.actions, action)

    def described(self) -> dict[str, object]:
        """What has to be done before and after, in words that a program can read too."""
        return {
            "inputs": {
                name: {"dtype": str(example.dtype), "shape": ["batch", *example.shape[1:]]}
                for name, example in self._example.items()
            },
            "steps": self._steps(),
            "output": "action",
            "after": _after(self.actions),
        }

    def _steps(self) -> list[str]:
        steps: list[str] = []
        for name, example in self._example.items():
            space = self.observations
            if isinstance(space, spaces.Dict):
                space = space.spaces[name]
            start = getattr(space, "start", 0)
            if np.any(start):
                steps.append(f"{name}: subtract {np.asarray(start).tolist()}")
            shape = tuple(space.shape or ())
            if shape != example.shape[1:] and sorted(shape) == sorted(example.shape[1:]):
                steps.append(f"{name}: move the channels to the front")
            elif shape != example.shape[1:]:
                steps.append(f"{name}: reshape to {list(example.shape[1:])}")
            steps.append(f"{name}: convert to {example.dtype} and add a batch dimension in front")
        return steps


def _shaped(value: np.ndarray[Any, Any], example: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    shape = example.shape[1:]
    if value.shape != shape and value.ndim == 3 and (value.shape[2], *value.shape[:2]) == shape:
        value = np.transpose(value, (2, 0, 1))
    return np.ascontiguousarray(value.reshape(1, *shape), dtype=example.dtype)


def _after(space: Any) -> str:  # a gymnasium space
    start = getattr(space, "start", 0)
    return f"add {np.asarray(start).tolist()}" if np.any(start) else "nothing"
