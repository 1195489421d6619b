"""`describe`: what an environment or a model is, as data; and the command that prints it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import Any, Final, Literal, TextIO, cast

from rlcore import ConfigurationError, Error, UnsupportedError
from rlcore.command_line import Parser
from rlcore.printable import printable

from rlmesh.authoring.binding import jsonable
from rlmesh.authoring.checks import Checked, checks_of
from rlmesh.authoring.describe_env import describe_env, make_of, spec_of
from rlmesh.authoring.envelope import (
    DescribeTypeError,
    Subject,
    envelope,
    envelope_text,
    subject_of,
)
from rlmesh.models.corners import overridden_corners
from rlmesh.models.model import Model
from rlmesh.server.sources import look_here
from rlmesh.specs import contract_of

Kind = Literal["env", "model"]
LABEL: Final = "dev.rlmesh.describe"
OK, FAILED, MISUSED = 0, 1, 2


def describe(
    obj: object, *, kind: Kind | None = None, generated_at: str | None = None
) -> dict[str, Any]:  # Any: JSON
    """Return what an environment or a model is, as plain data (envelope version 1).

    An environment is made once for it, with the defaults or the first variant, and closed; what
    fails stands in the description as an `error`. A model is not loaded.

    Args:
        obj: an `EnvFactory` or a `Model`, as class or instance; a function, with `kind`; or
            `"module:Class"`.
        kind: `"env"` or `"model"`, where the object does not say it.
        generated_at: when it was made, as RFC 3339; by default it does not say.

    Raises:
        ConfigurationError: the kind is neither, the time is none, or the text names nothing.
        DescribeTypeError: nothing says which kind it is.
    """
    return _described(obj, kind, generated_at)


def describe_json(
    obj: object,
    *,
    kind: Kind | None = None,
    generated_at: str | None = None,
    served_env: object = None,
    workflow_edition: str | None = None,
) -> str:
    """Return what `describe` does as canonical JSON: equal descriptions are equal texts.

    Args:
        obj: as for `describe`.
        kind: as for `describe`.
        generated_at: as for `describe`.
        served_env: an environment that was made already, or its contract; none is made then.
        workflow_edition: the edition that is declared, instead of the class's.

    Raises:
        ConfigurationError: as for `describe`.
    """
    return envelope_text(_described(obj, kind, generated_at, served_env, workflow_edition))


def main(argv: Sequence[str] | None = None) -> int:
    """Print a description, or what is wrong with one, and return the exit code.

    0 is success, 1 that a check failed or there is nothing to describe, 2 wrong usage.
    """
    parser = _parser()
    options = parser.parse_args(argv)
    look_here()
    named = [options.target, options.env, options.model, options.check_entrypoint,
             options.check_labels, options.check]  # fmt: skip
    if sum(name is not None for name in named) != 1:
        parser.error("name one thing to describe or to check")
    try:
        # What the author's code prints must not mix with what is asked for.
        with _author_prints_aside() as stdout:
            return _answered(options, stdout)
    except Error as error:
        sys.stderr.write(f"error: {printable(' '.join(str(error).split()))}\n")
        return FAILED


def kind_of(thing: Any) -> Kind | None:  # Any: narrowing leaves a class of unknown parameters
    """Return which kind a thing is, where it says it."""
    holder: type[object] = thing if isinstance(thing, type) else type(thing)
    if isinstance(thing, FunctionType):
        return None
    if issubclass(holder, Model):
        return "model"
    if make_of(thing) is not None:
        return "env"
    return "model" if callable(getattr(holder, "predict", None)) else None


def _described(
    obj: object,
    kind: str | None,
    generated_at: str | None,
    served_env: object = None,
    edition: str | None = None,
) -> dict[str, Any]:
    if kind not in (None, "env", "model"):
        raise ConfigurationError(f"kind is {kind!r}", hint="It can be 'env' or 'model'.")
    subject = subject_of(obj)
    found = kind or kind_of(subject.thing)
    if found is None:
        raise DescribeTypeError(
            f"nothing says whether {subject.thing!r} makes environments or is a model",
            hint="Say it: kind='env' or kind='model'; for a command, --kind env or --kind model.",
        )
    if found == "env":
        served = None if served_env is None else contract_of(served_env)
        return describe_env(obj, generated_at=generated_at, edition=edition, served=served)
    return _described_model(subject, generated_at, edition)


def _described_model(
    subject: Subject, generated_at: str | None, edition: str | None
) -> dict[str, Any]:
    thing = subject.thing
    holder: type[object] = thing if isinstance(thing, type) else type(thing)
    function: Callable[..., object] | None = None
    own: dict[str, Any] = {"model_spec": None}
    if isinstance(thing, FunctionType):
        function = thing
    else:
        own["model_spec"] = _model_spec(getattr(holder, "spec", None))
        corners = overridden_corners(holder)
        if corners:
            own["corners"] = list(corners)
        chunk: object = getattr(holder, "native_chunk", None)
        if isinstance(chunk, int):
            own["native_chunk"] = chunk
        load = getattr(holder, "load", None)
        if callable(load) and load is not Model.load:
            function = load
    return envelope(
        "model",
        subject,
        own,
        function=function,
        spec=spec_of(holder),
        generated_at=generated_at,
        edition=edition,
    )


def _model_spec(spec: object) -> Any:  # Any: JSON
    to_dict = getattr(spec, "to_dict", None)
    if not callable(to_dict):
        return None
    try:
        return jsonable(to_dict())
    except Exception as error:  # the badge says it
        return {"error": str(error)}


def _answered(options: argparse.Namespace, stdout: TextIO) -> int:
    if options.check is not None:
        raise UnsupportedError(
            f"the image {options.check!r} cannot be looked at: this build drives no containers",
            hint="Write its labels to a file (docker inspect) and use --check-labels FILE.",
        )
    if options.check_labels is not None:
        return _told(checks_of(_labelled(Path(options.check_labels))), options, stdout)
    if options.check_entrypoint is not None:
        return _told(checks_of(describe(options.check_entrypoint)), options, stdout)
    kind: Kind | None = "env" if options.env else "model" if options.model else None
    target = options.env or options.model or options.target
    text = describe_json(target, kind=kind, generated_at=options.generated_at)
    if options.label:
        text = f"{LABEL}={text}"
    if options.out is not None:
        Path(options.out).write_text(text + "\n", encoding="utf-8")
    else:
        print(text, file=stdout)
    return OK


def _told(checked: Checked, options: argparse.Namespace, stdout: TextIO) -> int:
    if options.json:
        print(json.dumps(checked.to_dict(), indent=2), file=stdout)
    else:
        print(checked_text(checked), file=stdout)
    return FAILED if checked.failed else OK


def checked_text(checked: Checked) -> str:
    """Return what checks found, a line each, for people."""
    rows = (("FAIL", checked.failed), ("warn", checked.warnings),
            ("skip", checked.not_checked), ("ok", checked.passed))  # fmt: skip
    return "\n".join(f"{word:<5} {printable(line)}" for word, lines in rows for line in lines)


def _labelled(file: Path) -> dict[str, Any]:
    try:
        labels: object = json.loads(file.read_text(encoding="utf-8"))
        label = cast("dict[str, object]", labels)[LABEL] if isinstance(labels, dict) else None
        found: object = json.loads(label) if isinstance(label, str) else None
    except (OSError, ValueError, KeyError) as error:
        raise ConfigurationError(f"{file} holds no labels with {LABEL!r}: {error!r}") from error
    if not isinstance(found, dict) or found.keys() < {"kind", "target", "runtime"}:
        raise ConfigurationError(f"{file} holds no description under {LABEL!r}")
    return cast("dict[str, Any]", found)


@contextmanager
def _author_prints_aside() -> Generator[TextIO]:
    sys.stdout.flush()
    before = sys.stdout
    try:
        kept = os.dup(1)
    except OSError:  # a caller without a descriptor of its own, such as a notebook
        yield before
        return
    try:
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        with open(os.dup(kept), "w", encoding="utf-8") as stdout:  # noqa: PTH123 - a descriptor
            yield stdout
    finally:
        sys.stdout = before
        os.dup2(kept, 1)
        os.close(kept)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m rlmesh._describe",
        description="Print what a class of environments or of models is, or check it.",
    )
    parser.add_argument("target", nargs="?", help="MODULE:CLASS")
    parser.add_argument("--env", metavar="MODULE:ATTR", help="what makes environments")
    parser.add_argument("--model", metavar="MODULE:ATTR", help="a model")
    parser.add_argument("--check-entrypoint", metavar="MODULE:CLASS", help="check its description")
    parser.add_argument("--check-labels", metavar="FILE", help="check an image's labels, as JSON")
    parser.add_argument("--check", metavar="IMAGE", help="not in this build")
    parser.add_argument("--label", action="store_true", help=f"print it as the label {LABEL}")
    parser.add_argument("--out", metavar="FILE", help="write it there")
    parser.add_argument("--json", action="store_true", help="print the checks as JSON")
    parser.add_argument("--generated-at", metavar="TIME", help="when it was made, as RFC 3339")
    return parser


if __name__ == "__main__":
    sys.exit(main())
