"""What descriptions of environments and of models have in common (envelope version 1)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from types import FunctionType
from typing import Any, Final, NamedTuple, cast

from rlcore import ConfigurationError
from rlcore.errors import Error

from rlmesh.authoring.binding import canonical, jsonable, params_described
from rlmesh.authoring.keys import DESCRIBE_SCHEMA_VERSION
from rlmesh.authoring.variants import Variant
from rlmesh.build import build_info
from rlmesh.params import ParamSpec, bind_params
from rlmesh.protocol.this_peer import this_peer
from rlmesh.workflow import chosen_edition

COMPONENT: Final = "rlmesh-python"
# The order of the top level in the text; what stands below is sorted.
ORDER: Final = (
    "schema_version",
    "kind",
    "generated_at",
    "target",
    "env_spec",
    "env_tags",
    "env_contracts",
    "model_spec",
    "corners",
    "native_chunk",
    "params",
    "variants",
    "runtime",
)
_TIME: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})", re.IGNORECASE
)


class DescribeTypeError(ConfigurationError, TypeError):
    """Nothing says whether a thing makes environments or is a model."""

    default_code = "not_describable"


class Subject(NamedTuple):
    """What is described: the thing, and how it was named, if it was."""

    thing: object
    entrypoint: str | None


def subject_of(described: object) -> Subject:
    """Return what a text names, or the thing that was given.

    Raises:
        ConfigurationError: the text names nothing.
    """
    if not isinstance(described, str):
        return Subject(described, None)
    module_name, colon, path = described.partition(":")
    if not (module_name and colon and path):
        raise ConfigurationError(f"{described!r} does not name a class", hint="Write module:Class.")
    try:
        found: object = import_module(module_name)
    except (Exception, SystemExit) as error:
        raise ConfigurationError(
            f"the module {module_name!r} of {described!r} cannot be imported: "
            f"{type(error).__name__}: {error}",
            code="not_importable",
            hint="Is it installed, or in this folder?",
        ) from error
    for name in path.split("."):
        if not hasattr(found, name):
            raise ConfigurationError(
                f"{described!r}: {found!r} has no attribute {name!r}", code="not_importable"
            )
        found = getattr(found, name)
    return Subject(found, described)


def envelope(
    kind: str,
    subject: Subject,
    own: Mapping[str, object],
    *,
    function: Callable[..., object] | None,
    spec: ParamSpec | None,
    generated_at: str | None,
    edition: str | None = None,
) -> dict[str, Any]:  # Any: JSON
    """Return a whole description.

    Args:
        kind: `env` or `model`.
        subject: what is described.
        own: what descriptions of that kind have.
        function: what the parameters are those of.
        spec: the declared ones.
        generated_at: when, as RFC 3339; None: it is not said.
        edition: the workflow edition that a caller declares.

    Raises:
        ConfigurationError: the time is none.
    """
    found: dict[str, Any] = {"schema_version": DESCRIBE_SCHEMA_VERSION, "kind": kind}
    if generated_at is not None:
        found["generated_at"] = _checked_time(generated_at)
    holder = _class_or_function(subject.thing)
    module = getattr(holder, "__module__", None) or "__main__"
    qualname = getattr(holder, "__qualname__", type(holder).__qualname__)
    found["target"] = {"entrypoint": subject.entrypoint, "qualname": f"{module}:{qualname}"}
    found.update(own)
    found["params"] = params_described(function, spec)
    variants = _variants(holder, function, spec)
    if variants:
        found["variants"] = variants
    found["runtime"] = _runtime(edition, getattr(holder, "workflow_edition", None))
    return found


def envelope_text(found: Mapping[str, object]) -> str:
    """Return the canonical text of a description.

    Raises:
        ConfigurationError: it has a part that descriptions do not have.
    """
    unknown = sorted(set(found) - set(ORDER))
    if unknown:
        raise ConfigurationError(f"a description has no part {', '.join(map(repr, unknown))}")
    parts = [f"{json.dumps(name)}:{canonical(found[name])}" for name in ORDER if name in found]
    return "{" + ",".join(parts) + "}"


def failure(error: BaseException) -> dict[str, Any]:
    """Return what stands in a description for what could not be found out."""
    cause = error.__cause__
    # Ours say on top of the author's what was being done; the badge is about the author's.
    if isinstance(error, Error) and isinstance(cause, Exception):
        error = cause
    return {"error": str(error), "error_type": type(error).__name__}


def _variants(
    holder: object, function: Callable[..., object] | None, spec: ParamSpec | None
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    catalogue = getattr(holder, "enumerate_variants", None)
    if callable(catalogue):
        try:
            entries = cast("Iterable[object]", catalogue())
            found["catalog"] = [_entry(each, function, spec) for each in entries]
        except Exception as error:  # the badge says it
            found["catalog_error"] = str(error)
    axes = getattr(holder, "enumerate_params", None)
    if callable(axes):
        try:
            variations = cast("Mapping[str, Sequence[object]]", axes())
            found["variations"] = {
                str(axis): jsonable(list(values)) for axis, values in variations.items()
            }
        except Exception as error:  # the badge says it
            found["variations_error"] = str(error)
    return found


def first_variant(holder: object) -> dict[str, Any] | None:
    """Return the parameters of the first entry of a catalogue, where there is one that is sound."""
    catalogue = getattr(holder, "enumerate_variants", None)
    if not callable(catalogue):
        return None
    try:
        for entry in cast("Iterable[object]", catalogue()):
            return dict(_variant(entry).params)
    except Exception:  # the description says it under `catalog_error`
        return None
    return None


def _entry(
    entry: object, function: Callable[..., object] | None, spec: ParamSpec | None
) -> dict[str, Any]:
    variant = _variant(entry)
    found: dict[str, Any] = {
        "id": variant.id,
        "params": jsonable(variant.params),
        "metadata": jsonable(variant.metadata),
    }
    if function is not None and spec is not None:
        try:
            bind_params(function, spec, variant.params)
        except ConfigurationError as error:
            found["error"] = str(error)
    return found


def _variant(entry: object) -> Variant:
    if isinstance(entry, Variant):
        return entry
    if isinstance(entry, Mapping):
        given = cast("Mapping[str, Any]", entry)
        if isinstance(given.get("id"), str):
            more = given.get("metadata", {})
            return Variant(given["id"], given.get("params", {}), **dict(more))
    raise DescribeTypeError(
        f"enumerate_variants() gave {entry!r}", hint="Give Variant(id, params)."
    )


def _runtime(keyword: str | None, declared: object) -> dict[str, Any]:
    peer, build = this_peer(), build_info()
    found: dict[str, Any] = {
        "component": COMPONENT,
        "language": peer.language,
        "language_version": peer.language_version,
        "package_version": peer.package_version,
        "os": peer.os,
        "os_version": peer.os_version,
        "arch": peer.arch,
        "framework_versions": dict(peer.framework_versions),
        "protocol_generation": build.protocol_generation,
        "supported_workflow_editions": list(build.supported_workflow_editions),
        "preferred_workflow_edition": build.workflow_edition,
    }
    try:
        said = declared if isinstance(declared, str) else None
        edition = chosen_edition(keyword=keyword, declared=said)
    except ConfigurationError as error:
        found["workflow_edition_error"] = str(error)
    else:
        found["preferred_workflow_edition"] = edition or build.workflow_edition
    return found


def _class_or_function(thing: object) -> object:
    return thing if isinstance(thing, type | FunctionType) else type(thing)


def _checked_time(text: object) -> str:
    if isinstance(text, str) and _TIME.fullmatch(text):
        try:
            datetime.fromisoformat(text.upper().replace("Z", "+00:00"))
        except ValueError:
            pass
        else:
            return text
    raise ConfigurationError(
        f"generated_at is {text!r}, no RFC 3339 time", hint="Write 2026-01-31T12:00:00Z."
    )
