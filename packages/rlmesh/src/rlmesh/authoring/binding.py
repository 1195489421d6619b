"""Parameters as JSON: as they are declared, and as they were given."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from rlmesh.params import Keyword, Param, ParamSpec, Vector, keywords_of

if TYPE_CHECKING:
    from rlmesh.authoring.factory import EnvFactory


def params_described(
    function: Callable[..., object] | None, spec: ParamSpec | None
) -> dict[str, Any]:  # Any: JSON
    """Return what a function can be called with: what is declared, and what else it takes."""
    keywords: Mapping[str, Keyword] = {}
    if function is not None:
        keywords = keywords_of(function).keywords
    declared = () if spec is None else spec.params
    names = {param.name for param in declared}
    return {
        "param_spec": None if spec is None else spec_described(spec, keywords),
        "signature_tier": [
            {
                "name": name,
                "type": _annotated(keyword),
                "default": None if keyword.required else jsonable(keyword.default),
                "required": keyword.required,
            }
            for name, keyword in keywords.items()
            if name not in names
        ],
    }


def spec_described(spec: ParamSpec, keywords: Mapping[str, Keyword]) -> dict[str, Any]:
    """Return declared parameters, with the defaults that a signature has for them."""
    return {
        "extra": spec.extra,
        "params": [_described(param, keywords.get(param.name)) for param in spec.params],
    }


def binding_record(factory: type[EnvFactory], binding: Mapping[str, object]) -> dict[str, Any]:
    """Return what environments say they were made with (`rlmesh.params.v1.binding`)."""
    keywords = keywords_of(factory.make).keywords
    spec = factory.params or ParamSpec()
    return {
        "binding": {name: jsonable(value) for name, value in binding.items()},
        "param_spec": spec_described(spec, keywords),
        "validated": {name: spec.named(name) is not None or name in keywords for name in binding},
    }


def jsonable(value: object) -> Any:  # Any: JSON
    """Return a value as JSON can hold it: infinities are null, what it has no form for is text."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return int(value)
        case float():
            return float(value) if math.isfinite(value) else None
        case list() | tuple():
            return [jsonable(item) for item in cast("Sequence[object]", value)]
        case Mapping():
            entries = cast("Mapping[object, object]", value)
            return {str(key): jsonable(entry) for key, entry in entries.items()}
        case _:
            tolist = getattr(value, "tolist", None)
            return jsonable(tolist()) if callable(tolist) else repr(value)


def canonical(value: object) -> str:
    """Return JSON without blanks, its keys sorted."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def _described(param: Param, keyword: Keyword | None) -> dict[str, Any]:
    required = keyword is None or keyword.required
    found: dict[str, Any] = {
        "name": param.name,
        "type": param.kind.label,
        "required": required,
    }
    if keyword is not None and not required:
        found["default"] = jsonable(keyword.default)
    if param.choices is not None:
        found["choices"] = jsonable(param.choices)
    if param.description:
        found["description"] = param.description
    if param.group is not None:
        found["group"] = param.group
    if isinstance(param.type, Vector):
        found["dim"] = param.type.dim
        if param.type.unit:
            found["unit"] = True
    for name in ("minimum", "maximum", "step"):
        limit: object = getattr(param, name)
        if limit is not None:
            found[name] = limit
    return found


def _annotated(keyword: Keyword) -> str:
    annotation = keyword.annotation
    if annotation is inspect.Parameter.empty:
        # As the published description has it: a scalar default says what it is, others do not.
        scalar = isinstance(keyword.default, bool | int | float)
        return type(keyword.default).__name__ if scalar else "str"
    if isinstance(annotation, str):
        return annotation
    if isinstance(annotation, type) and not hasattr(annotation, "__origin__"):
        return annotation.__name__
    return str(annotation)
