"""What a network of ours sees: observations of any learnable space as one row of numbers each."""

# gymnasium leaves its type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from rlcore import ConfigurationError
from torch import Tensor, nn

ONLY = "observation"
"""The name of the one input of a space that is not a Dict."""

_SMALLEST_IMAGE = 36
# The convolutions shrink anything smaller to nothing.

# An observation is whatever its space says.
Value = Any


class Observations:
    """Stacks learner observations into the tensors that a network takes, by name."""

    def __init__(self, space: gymnasium.Space[Any]) -> None:
        self.space = space
        self.parts = _parts(space)
        self._types = {name: _dtype(part) for name, part in self.parts.items()}

    def stack(self, observations: Sequence[Value]) -> dict[str, Tensor]:
        """One batch out of single observations."""
        if not isinstance(self.space, spaces.Dict):
            rows = np.asarray(observations, dtype=self._types[ONLY])
            return {ONLY: torch.from_numpy(rows)}
        return {
            name: torch.from_numpy(np.asarray([seen[name] for seen in observations], dtype=dtype))
            for name, dtype in self._types.items()
        }

    def example(self, rows: int) -> dict[str, Tensor]:
        """A batch of zeros, of the shapes and types that `stack` makes."""
        return {
            name: torch.from_numpy(np.zeros((rows, *(part.shape or ())), dtype=self._types[name]))
            for name, part in self.parts.items()
        }


class Encoder(nn.Module):
    """Turns a batch of named inputs into rows of `width` features.

    Numbers are taken as they are, classes as one-hot vectors, images through convolutions.
    """

    def __init__(self, observations: Observations) -> None:
        super().__init__()
        encoders = {name: _encoder(part) for name, part in observations.parts.items()}
        self.names = tuple(encoders)
        # Names of a Dict may be no names of modules.
        self.encoders = nn.ModuleList(encoders.values())
        with torch.no_grad():
            self.width = int(self(observations.example(1)).shape[1])

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """The features."""
        rows = [
            encode(inputs[name]) for name, encode in zip(self.names, self.encoders, strict=True)
        ]
        return rows[0] if len(rows) == 1 else torch.cat(rows, dim=1)


class _Numbers(nn.Module):
    def forward(self, values: Tensor) -> Tensor:
        return values.flatten(1).to(torch.float32)


class _Classes(nn.Module):
    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.sizes = tuple(sizes)

    def forward(self, values: Tensor) -> Tensor:
        columns = values.reshape(values.shape[0], len(self.sizes))
        hot = [
            nn.functional.one_hot(columns[:, index], size) for index, size in enumerate(self.sizes)
        ]
        return torch.cat(hot, dim=1).to(torch.float32)


class _Image(nn.Module):
    """The convolutions of Mnih et al. 2015 and a layer of 256 features."""

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__()
        self.channels_last = shape[2] < min(shape[0], shape[1])
        channels = shape[2] if self.channels_last else shape[0]
        self.convolutions = nn.Sequential(
            nn.Conv2d(channels, 32, 8, 4),
            nn.ReLU(),
            nn.Conv2d(32, 64, 4, 2),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3, 1),
            nn.ReLU(),
            nn.Flatten(),
        )
        with torch.no_grad():
            width = self._convolve(torch.zeros((1, *shape))).shape[1]
        self.features = nn.Sequential(nn.Linear(width, 256), nn.ReLU())

    def _convolve(self, pixels: Tensor) -> Tensor:
        if self.channels_last:
            pixels = pixels.permute(0, 3, 1, 2)
        return cast("Tensor", self.convolutions(pixels.to(torch.float32) / 255.0))

    def forward(self, pixels: Tensor) -> Tensor:
        return cast("Tensor", self.features(self._convolve(pixels)))


def _parts(space: gymnasium.Space[Any]) -> dict[str, gymnasium.Space[Any]]:
    if isinstance(space, spaces.Dict):
        return dict(space.spaces)
    return {ONLY: space}


def _encoder(space: gymnasium.Space[Any]) -> nn.Module:
    match space:
        case spaces.Box() if is_image(space):
            return _Image(space.shape)
        case spaces.Box() | spaces.MultiBinary():
            return _Numbers()
        case spaces.Discrete():
            return _Classes([int(space.n)])
        case spaces.MultiDiscrete():
            return _Classes([int(size) for size in space.nvec.flat])
        case _:
            raise ConfigurationError(
                f"no network of ours takes observations of {space}",
                code="space_not_learnable",
                hint="It takes Box, Discrete, MultiDiscrete, MultiBinary and a flat Dict of them",
            )


def _dtype(space: gymnasium.Space[Any]) -> np.dtype[Any]:
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        return np.dtype(np.int64)
    if isinstance(space, spaces.Box) and is_image(space):
        return np.dtype(np.uint8)
    return np.dtype(np.float32)


def is_image(space: spaces.Box) -> bool:
    """Whether it is a picture of bytes, large enough for convolutions."""
    if space.dtype != np.uint8 or len(space.shape) != 3:
        return False
    if not ((space.low == 0).all() and (space.high == 255).all()):
        return False
    channels, *sides = sorted(space.shape)
    return channels in (1, 3, 4) and min(sides) >= _SMALLEST_IMAGE
