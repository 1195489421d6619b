"""YAML as far as JSON goes: no aliases, no dates, no numbers that are none."""

from __future__ import annotations

import math
from typing import Any, cast

import yaml


class _Loader(yaml.SafeLoader):
    """Takes dates as the text they are, and refuses aliases, by which a text can grow endlessly."""

    # PyYAML's own types do not say what its nodes are.
    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not taken; write it out")
        return super().compose_node(parent, index)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def load(text: str) -> object:
    """Return the value of a YAML text.

    Raises:
        ValueError: it is not YAML, or has what JSON has no form for.
    """
    try:
        value = cast("object", yaml.load(text, Loader=_Loader))
        _require_json(value)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return value


def _require_json(value: object) -> None:
    if isinstance(value, dict):
        for key, item in cast("dict[object, object]", value).items():
            if not isinstance(key, str):
                raise ValueError(f"the key {key!r} is not text; put it into quotes")
            _require_json(item)
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            _require_json(item)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value!r} is no JSON number")
    elif value is not None and not isinstance(value, str | int | float):
        raise ValueError(f"{type(value).__name__} has no JSON form")
