"""The network of our own trainers: from observations to a distribution over actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from rleaas.training.actor.actions import Actions, Numbers, actions_of
from rleaas.training.actor.observations import Encoder, Observations

if TYPE_CHECKING:
    import gymnasium

NET_ARCH = (64, 64)


class ActorNetwork(nn.Module):
    """A policy, and where `critic` is asked for a value function beside it.

    The two have layers of their own over one encoder. `log_width` of Box actions does not depend
    on the observation.
    """

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
        net_arch: Sequence[int] = NET_ARCH,
        *,
        critic: bool = False,
    ) -> None:
        super().__init__()
        self.observations = Observations(observation_space)
        self.actions: Actions = actions_of(action_space)
        self.net_arch = tuple(net_arch)
        self.encoder = Encoder(self.observations)
        is_box = isinstance(self.actions, Numbers)
        width = self.actions.outputs // 2 if is_box else self.actions.outputs
        self.policy = _layers(self.encoder.width, self.net_arch, width, gain=0.01)
        self.log_width = nn.Parameter(torch.full((width,), -0.5)) if is_box else None
        self.critic = _layers(self.encoder.width, self.net_arch, 1, gain=1.0) if critic else None

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """The parameters of the distribution over actions, a row for every observation."""
        return self._outputs(self.encoder(inputs))

    def both(self, inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """The parameters of the distribution and the values."""
        features = self.encoder(inputs)
        return self._outputs(features), self._values(features)

    def values(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """The values alone."""
        return self._values(self.encoder(inputs))

    def draw(self, outputs: Tensor, generator: torch.Generator) -> Tensor:
        """An action drawn from each of these distributions.

        Raises:
            FloatingPointError: they are none, as the weights or what they add up to are no numbers.
        """
        try:
            return self.actions.sample(outputs, generator)
        except RuntimeError as error:
            if bool(torch.isfinite(outputs).all()):
                raise
            raise FloatingPointError("the policy gives no probabilities any more") from error

    def is_finite(self) -> bool:
        """Whether every weight is a number."""
        return all(bool(torch.isfinite(weight).all()) for weight in self.parameters())

    def _outputs(self, features: Tensor) -> Tensor:
        outputs = cast("Tensor", self.policy(features))
        if self.log_width is None:
            return outputs
        return torch.cat([outputs, self.log_width.expand_as(outputs)], dim=1)

    def _values(self, features: Tensor) -> Tensor:
        if self.critic is None:
            raise TypeError("this network was built without a critic")
        return cast("Tensor", self.critic(features))[:, 0]


def _layers(width: int, hidden: Sequence[int], outputs: int, *, gain: float) -> nn.Sequential:
    layers: list[nn.Module] = []
    for size in hidden:
        layers += [_linear(width, size, 2.0**0.5), nn.Tanh()]
        width = size
    return nn.Sequential(*layers, _linear(width, outputs, gain))


def _linear(width: int, outputs: int, gain: float) -> nn.Linear:
    layer = nn.Linear(width, outputs)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer
