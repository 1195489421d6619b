"""What a local environment is, as far as that can be told from outside: classes and a spec."""

from typing import Any, cast

from rlmesh.backends.content import Content, content_of
from rlmesh.specs import UNKNOWN_ID


def innermost(env: object) -> object:
    """Return the environment inside of gymnasium's wrappers."""
    return _layers(env)[-1]


def name_of_env(env: object, told: str) -> str:
    """Return what an environment is called: by its contract, or by its class."""
    return told if told != UNKNOWN_ID else type(innermost(env)).__qualname__


def content_of_env(env: object) -> Content:
    """Return what can be compared of an environment: the code of its classes, and its spec.

    What it was made with is told by gymnasium's spec only, and what it holds is its state.
    """
    layers = _layers(env)
    spec: Any = getattr(layers[-1], "spec", None)  # Any: gymnasium's
    parts = ("id", "kwargs", "max_episode_steps", "additional_wrappers")
    told = None if spec is None else {name: getattr(spec, name, None) for name in parts}
    name = type(layers[-1]).__qualname__
    unseen = () if told is not None else (f"what {name} was made with",)
    return content_of([[type(layer) for layer in layers], told], unseen=unseen)


def _layers(env: object) -> list[object]:
    layers = [env]
    while True:
        inner = cast("object", getattr(layers[-1], "__dict__", {}).get("env"))
        if inner is None or not callable(getattr(inner, "step", None)) or len(layers) > 99:
            return layers
        layers.append(inner)
