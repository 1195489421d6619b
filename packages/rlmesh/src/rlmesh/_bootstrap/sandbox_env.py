"""`python -m rlmesh._bootstrap.sandbox_env`: what a container of an environment runs.

What to serve stands in RLMESH_BOOTSTRAP_JSON, or in a file: `{"spec": {"kind": ..., ...}}`. It is
served at RLMESH_ADDRESS, or at RLMESH_PORT on all interfaces of the container (50051). Whoever
starts the container decides who can reach that, so it asks for no token unless RLMESH_TOKEN is set.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from rlcore import ConfigurationError, Error, UnsupportedError
from rlcore.environ import variable

from rlmesh._serving import import_packages
from rlmesh.serve import FAILED
from rlmesh.serve import main as serve
from rlmesh.server.sources import GYM, PYTHON, look_here

PROGRAM: Final = "python -m rlmesh._bootstrap.sandbox_env"
VARIABLE: Final = "RLMESH_BOOTSTRAP_JSON"
PORT: Final = "50051"
# What each kind of environment is named by.
NAMED_BY: Final = {"gym": ("env_id", GYM), "factory": ("entrypoint", PYTHON)}
PARTS: Final = ("kind", "imports", "kwargs", "num_envs", "vectorization_mode")


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or Ctrl-C and return the exit code, as `rlmesh.serve` does."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    look_here()
    try:
        spec = _spec(arguments)
        named = _source(spec)
        import_packages(cast("Sequence[str]", _part(spec, "imports", list, [])))
        return serve([named, *_options(spec)], prog=PROGRAM)
    except Error as error:
        sys.stderr.write(f"error: {' '.join(str(error).split())}\n")
        return FAILED


def _spec(arguments: Sequence[str]) -> Mapping[str, Any]:  # Any: JSON
    if len(arguments) > 1:
        raise ConfigurationError(f"{arguments[1]!r} is one argument too many")
    where, text = VARIABLE, variable(VARIABLE)
    if arguments:
        where = arguments[0]
        try:
            text = Path(where).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{where} cannot be read: {error}") from error
    if text is None:
        raise ConfigurationError(
            "nothing says what to serve", hint=f"Set {VARIABLE}, or name a JSON file."
        )
    try:
        content: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"{where} holds no JSON: {error}") from error
    spec = cast("dict[str, object]", content).get("spec") if isinstance(content, dict) else None
    if not isinstance(spec, dict):
        raise ConfigurationError(f"{where} has no object under 'spec'")
    return cast("dict[str, Any]", spec)


def _source(spec: Mapping[str, Any]) -> str:
    kind: object = spec.get("kind")
    if kind == "hf":
        raise UnsupportedError(
            "environments of the Hugging Face hub are not served by this build",
            hint="Serve one as kind 'gym' or 'factory'.",
        )
    if not isinstance(kind, str) or kind not in NAMED_BY:
        raise ConfigurationError(
            f"the kind of environment is {kind!r}", hint=f"It can be {', '.join(NAMED_BY)}."
        )
    name, scheme = NAMED_BY[kind]
    unknown = sorted(set(spec) - {*PARTS, name})
    if unknown:
        raise ConfigurationError(f"a spec of kind {kind!r} has no {', '.join(map(repr, unknown))}")
    found: object = spec.get(name)
    if not isinstance(found, str) or not found:
        raise ConfigurationError(f"{name} of the spec is {found!r}")
    return scheme + found


def _options(spec: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    if variable("RLMESH_ADDRESS") is None:
        found += ["--host", "0.0.0.0", "--port", variable("RLMESH_PORT") or PORT]
    if variable("RLMESH_TOKEN") is None and variable("RLMESH_TOKEN_KEY") is None:
        found.append("--allow-insecure")
    kwargs = _part(spec, "kwargs", dict, {})
    if kwargs:
        found += ["--kwargs-json", json.dumps(kwargs)]
    count = _part(spec, "num_envs", int, 1)
    mode = _part(spec, "vectorization_mode", str, None)
    if count != 1 or mode is not None:
        found += ["--num-envs", str(count)]
    if mode is not None:
        found += ["--vectorization-mode", str(mode)]
    return found


def _part(spec: Mapping[str, Any], name: str, kind: type, default: object) -> Any:
    value = spec.get(name)
    if value is None:
        return default
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ConfigurationError(f"{name} of the spec is {value!r}, no {kind.__name__}")
    return value


if __name__ == "__main__":
    sys.exit(main())
