"""The codecs of a contract, compiled once for all sessions."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Self

from rlcore.environ import variable

from rlmesh.codec import NUMPY, BatchCodec, Codec, compile_batch_codec, compile_codec
from rlmesh.server.validation import POLICY_VARIABLE, Checks, policy_named
from rlmesh.specs import AutoresetMode

if TYPE_CHECKING:
    from rlmesh.server.environments import Environments


class Codecs:
    """Reads actions and writes observations, of one lane and of many, and knows their ranges."""

    def __init__(self, environments: Environments) -> None:
        contract, backend = environments.contract, environments.backend
        action, observation = contract.action_space, contract.observation_space
        self.num_envs = contract.num_envs
        self.autoreset_mode = contract.autoreset_mode
        self.action: Codec = compile_codec(action, backend=backend, strict_nan=True)
        self.observation: Codec = compile_codec(observation, backend=NUMPY)
        self.actions: BatchCodec = compile_batch_codec(action, backend=backend, strict_nan=True)
        self.observations: BatchCodec = compile_batch_codec(observation, backend=NUMPY)
        self.checks = Checks(contract, policy_named(variable(POLICY_VARIABLE)))

    def of_several(self, count: int) -> Self:
        """Return them for a session with so many environments, none of which resets itself."""
        several = copy.copy(self)
        several.num_envs = count
        several.autoreset_mode = AutoresetMode.DISABLED
        several.checks = self.checks.of_several(count)
        return several
