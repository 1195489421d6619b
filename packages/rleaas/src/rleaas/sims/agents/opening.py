"""What the text face of a world tells an agent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from rlcore import ConfigurationError

# JSON of any form; who reads it looks at what it is.
Value = Any
Context = Mapping[str, Value]
"""`episode_seed`, `predict_index`, `predict_seed` and the episode's own `state`, of rlmesh."""


def read(observation: object) -> Mapping[str, Value]:
    """The JSON object that an observation of the text face is.

    Raises:
        ConfigurationError: it is none: the environment has another face.
    """
    try:
        told: object = json.loads(observation) if isinstance(observation, str) else None
    except ValueError:
        told = None
    if not isinstance(told, Mapping):
        raise ConfigurationError(
            f"the agent plays the text face of a world, and was shown {str(observation)[:100]!r}",
            code="wrong_face",
            hint="Make the world with face='text'",
        )
    return cast("Mapping[str, Value]", told)


def action(calls: Sequence[tuple[str, Value]]) -> str:
    """The action that makes these calls."""
    return json.dumps({"tool_calls": [{"tool": tool, "arguments": given} for tool, given in calls]})
