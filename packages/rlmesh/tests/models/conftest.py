"""Contracts of environments that nothing has to play."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from rlmesh.spaces import from_gymnasium_space
from rlmesh.specs import EnvContract

Contracts = Callable[..., EnvContract]


@pytest.fixture
def contract() -> Contracts:
    """Make a contract: of two floats in and one out, unless other spaces are given."""

    def make(observed: Any = None, acted: Any = None, metadata: Any = None) -> EnvContract:
        return EnvContract(
            id="Made-v0",
            observation_space=from_gymnasium_space(observed or spaces.Box(-9, 9, (2,), np.float32)),
            action_space=from_gymnasium_space(acted or spaces.Box(-9, 9, (1,), np.float32)),
            metadata=metadata,
        )

    return make
