"""What is known of a checkpoint beside its file: its figures and its card; pure."""

from collections.abc import Mapping
from typing import Final, cast

from rleaas.server.rules.json_values import number

JsonObject = dict[str, object]

# What the row of a checkpoint does not say already.
# Every list of checkpoints carries their figures.
_MOST_FIGURES: Final = 1_000
_LONGEST_NAME: Final = 200
_TOLD: Final = ("family", "packages", "seeds", "hyperparameters", "network")


def metrics_of(
    manifest: Mapping[str, object] | None,
    *,
    avg_reward: float | None = None,
    success_rate: float | None = None,
    composite_verifier_score: float | None = None,
) -> JsonObject:
    """The figures of a checkpoint: those that its file tells, and those that came with it."""
    said = None if manifest is None else manifest.get("metrics")
    found: JsonObject = {}
    for name, value in cast("JsonObject", said if isinstance(said, dict) else {}).items():
        if len(found) < _MOST_FIGURES and len(name) <= _LONGEST_NAME and number(value) is not None:
            found[name] = value
    came = {
        "avg_reward": avg_reward,
        "success_rate": success_rate,
        "composite_verifier_score": composite_verifier_score,
    }
    return {**found, **{name: value for name, value in came.items() if value is not None}}


def card_of(manifest: Mapping[str, object] | None, request: Mapping[str, object]) -> JsonObject:
    """What made a checkpoint: from its own file where that says it, else from what was asked."""
    card: JsonObject = {name: manifest[name] for name in _TOLD if manifest and manifest.get(name)}
    card.setdefault("hyperparameters", request.get("config") or {})
    if manifest is not None and "seed" in manifest:
        card.setdefault("seeds", {"run": manifest["seed"]})
    elif request.get("seed") is not None:
        card.setdefault("seeds", {"run": request["seed"]})
    return card
