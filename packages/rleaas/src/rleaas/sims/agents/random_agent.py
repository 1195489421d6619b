"""An agent that knows nothing: any tool, any arguments that the tool's schema allows."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, cast

from rlcore import ConfigurationError

from rleaas.sims.agents.opening import Context, action, read

# JSON of any form; who reads it looks at what it is.
Value = Any
_MOST_WORDS = 500


class RandomAgent:
    """Calls tools at random, on either face of a world; the same seed makes the same calls.

    On the text face it fills in arguments by their schema, and for texts takes words that it was
    told before, such as ids. On the discrete face it needs to know how many actions there are.

    Args:
        seed: of its choices, with the episode's.
        actions: of the discrete face.
    """

    def __init__(self, seed: int = 0, *, actions: int | None = None) -> None:
        self._seed = seed
        self._actions = actions

    def predict(self, observation: object, context: Context) -> str | int:
        """A call, at random.

        Raises:
            ConfigurationError: the observation is no text, and nobody said how many actions.
        """
        place = (self._seed, context["episode_seed"], context["predict_index"])
        rng = random.Random(repr(place))
        if not isinstance(observation, str):
            if self._actions is None:
                raise ConfigurationError(
                    "a random agent on the discrete face has to know how many actions there are",
                    code="wrong_face",
                    hint="RandomAgent(actions=len(tools)), or the text face",
                )
            return rng.randrange(self._actions)
        told = read(observation)
        state = context["state"]
        if "tools" in told:
            state["tools"], state["words"] = told["tools"], []
        state["words"] = [*state["words"], *_words(told)][-_MOST_WORDS:]
        tool: Mapping[str, Value] = rng.choice(state["tools"])
        arguments = _object(tool.get("parameters") or {}, state["words"], rng)
        return action([(str(tool["name"]), arguments)])


def _object(
    schema: Mapping[str, Value], words: Sequence[str], rng: random.Random
) -> dict[str, Value]:
    required = schema.get("required") or ()
    properties: Mapping[str, Value] = schema.get("properties") or {}
    return {
        name: _value(part, words, rng)
        for name, part in properties.items()
        if name in required or rng.random() < 0.5
    }


def _value(schema: Mapping[str, Value], words: Sequence[str], rng: random.Random) -> Value:
    if "enum" in schema:
        return rng.choice(schema["enum"])
    kind = schema.get("type")
    if kind == "boolean":
        return rng.random() < 0.5
    if kind in ("integer", "number"):
        low, high = schema.get("minimum", 0), schema.get("maximum", 1_000)
        return rng.randint(int(low), int(high)) if kind == "integer" else rng.uniform(low, high)
    if kind == "array":
        return [_value(schema.get("items") or {}, words, rng) for _ in range(rng.randint(1, 3))]
    if kind == "object":
        return _object(schema, words, rng)
    return rng.choice(words) if words else "something"


def _words(told: Value) -> list[str]:
    """Short texts in what was told, but for the tools' descriptions."""
    if isinstance(told, str):
        return [told] if len(told) <= 60 else []
    if isinstance(told, Mapping):
        pairs = cast("Mapping[str, Value]", told)
        return [word for key, part in pairs.items() if key != "tools" for word in _words(part)]
    if not isinstance(told, list):
        return []
    return [word for part in cast("Sequence[Value]", told) for word in _words(part)]
