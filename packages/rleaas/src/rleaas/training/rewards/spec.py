"""What a request says of rewards: the function, the verifiers and their weights.

Nothing here runs anybody's code; no training library is imported.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from rlcore import ConfigurationError, ExpressionError

from rleaas.training import config_rules as rules
from rleaas.verify import Expression

VARIABLES = (
    "reward",
    "observation",
    "action",
    "info",
    "terminated",
    "truncated",
    "step",
    "episode",
    "seed",
)
"""What a reward function may ask for; the last three are numbers of the step and of its episode."""

FUNCTION = "reward"
"""The function that is called, where a file has several."""

LONGEST_SOURCE = 256 * 1024
MOST_VERIFIERS = 50
_KEY = "reward_fn"
_FORMS = ("path", "inline")
_FILE = re.compile(r"[^\s()=*+<>,;'\"]+\.py")
_CODE = re.compile(r"^\s*(?:async\s+)?(?:def|class|import|from|@)\b|^\s*@", re.MULTILINE)
_ASSIGNED = re.compile(r"^\s*reward\s*=(?!=)\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardSpec:
    """A checked reward function.

    Attributes:
        text: an expression, or Python source; None: a path whose file nobody has read yet.
        is_code: whether it is Python.
        path: the name of the file that it came from.
        function: the name of the function in the source.
    """

    text: str | None
    is_code: bool
    path: str | None = None
    function: str | None = None

    @property
    def label(self) -> str:
        """How errors name it."""
        if self.path is not None:
            return f"reward function {self.path}"
        return "inline reward function" if self.is_code else "reward expression"

    @property
    def file_name(self) -> str:
        """The file in tracebacks."""
        return self.path or "<reward_fn>"

    def to_json(self) -> dict[str, object]:
        """The value that is stored and sent; it validates to this again."""
        if self.path is None:
            return {"type": "inline", "value": self.text}
        found: dict[str, object] = {"type": "path", "value": self.path}
        if self.text is not None:
            found["source"] = self.text
        return found


def validate_reward_fn(
    value: object, *, allow_code: bool = True, need_source: bool = True
) -> RewardSpec | None:
    """A checked `reward_fn`: an expression, the path of a file, or the text of a function.

    Args:
        value: a text, `{path}`, `{inline}` or `{type, value}`; beside a path its `source`.
        allow_code: whether Python may run here; expressions always may.
        need_source: whether a path has to come with its file's text.

    Raises:
        ExpressionError: an expression cannot be read; a caret shows where.
        ConfigurationError: another form is wrong; code `code_not_allowed` where Python may not run,
            `reward_source_missing` where only a path came.
    """
    if value is None:
        return None
    form, text, source = _form_of(value)
    if form == "path":
        spec = _from_file(text, source, need_source=need_source)
    elif _CODE.search(text):
        spec = RewardSpec(text=text, is_code=True, function=_function_in(text, "<reward_fn>"))
    else:
        spec = RewardSpec(text=_expression(text).text, is_code=False)
    if spec.is_code and not allow_code:
        raise ConfigurationError(
            f"{_KEY}: this server runs no Python of its users",
            code="code_not_allowed",
            hint="Write the reward as an expression, or ask the operator to allow code",
        )
    return spec


def read_reward_file(path: str | Path) -> dict[str, object]:
    """The `reward_fn` of a file here, with its text, as it goes to a server.

    Raises:
        ConfigurationError: there is no such file, it is too large or no text.
    """
    file = Path(path)
    try:
        if file.stat().st_size > LONGEST_SOURCE:
            raise rules.bad(_KEY, str(path), f"may have {LONGEST_SOURCE} bytes at most")
        source = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{_KEY}: {str(path)!r} cannot be read: {error}",
            code="reward_source_missing",
            hint="Give the path of a Python file on this machine",
        ) from error
    return {"type": "path", "value": str(path), "source": source}


def validate_verifiers(verifier_ids: object, verifier_weights: object = None) -> dict[str, float]:
    """The weight of each verifier of a request, 1 where none is given.

    Args:
        verifier_ids: a list of ids.
        verifier_weights: an object from ids to weights, or a list beside the ids.

    Raises:
        ConfigurationError: naming what is wrong.
    """
    if verifier_ids is None or verifier_ids == []:
        if verifier_weights:
            raise rules.bad("verifier_weights", verifier_weights, "needs verifier_ids")
        return {}
    ids = _ids(verifier_ids)
    if verifier_weights is None:
        return dict.fromkeys(ids, 1.0)
    if isinstance(verifier_weights, Mapping):
        given = cast("Mapping[str, object]", verifier_weights)
        for key in given:
            if key not in ids:
                raise rules.unknown(key, "verifier_weights", ids)
        return {one: _weight(one, given.get(one, 1.0)) for one in ids}
    listed = rules.sequence(verifier_weights)
    if len(listed) != len(ids):
        raise rules.bad(
            "verifier_weights", verifier_weights, f"must have a weight for each of {len(ids)} ids"
        )
    return {one: _weight(one, weight) for one, weight in zip(ids, listed, strict=True)}


def _ids(value: object) -> list[str]:
    listed = rules.sequence(value)
    if not listed or not all(isinstance(one, str) and one for one in listed):
        raise rules.bad("verifier_ids", value, "must be a list of ids")
    ids = [str(one) for one in listed]
    if len(ids) > MOST_VERIFIERS:
        raise rules.bad("verifier_ids", len(ids), f"may name {MOST_VERIFIERS} verifiers at most")
    if len(set(ids)) != len(ids):
        raise rules.bad("verifier_ids", value, "must name each verifier once")
    return ids


def _weight(verifier_id: str, value: object) -> float:
    weight = rules.above_zero(f"verifier_weights[{verifier_id!r}]", value)
    if weight > 1e6:
        raise rules.bad(f"verifier_weights[{verifier_id!r}]", value, "must be at most 1e6")
    return weight


def _form_of(value: object) -> tuple[str, str, object]:
    if isinstance(value, str):
        text = value.strip()
        if not text:
            raise rules.bad(_KEY, value, "must not be empty")
        return ("path" if _FILE.fullmatch(text) else "inline"), text, None
    if not isinstance(value, Mapping):
        raise rules.bad(_KEY, value, "must be a text, {path}, {inline} or {type, value}")
    given = cast("Mapping[str, object]", value)
    kind, inner = given.get("type"), given.get("value")
    if isinstance(kind, str) and kind.strip() in _FORMS and _is_filled(inner):
        return kind.strip(), str(inner).strip(), given.get("source")
    forms = [form for form in _FORMS if _is_filled(given.get(form))]
    if len(forms) != 1:
        raise rules.bad(_KEY, dict(given), "must have one of 'path' and 'inline', as text")
    return forms[0], str(given[forms[0]]).strip(), given.get("source")


def _is_filled(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _expression(text: str) -> Expression:
    # The published form of an inline reward is an assignment.
    expression = Expression(_ASSIGNED.sub("", text))
    for name in sorted(expression.names - set(VARIABLES)):
        near = difflib.get_close_matches(name, VARIABLES, n=1)
        raise ExpressionError(
            f"{_KEY}: there is no variable {name!r}",
            expression=expression.text,
            position=expression.text.find(name),
            hint=f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(VARIABLES)}",
        )
    return expression


def _from_file(path: str, source: object, *, need_source: bool) -> RewardSpec:
    if source is None:
        if need_source:
            raise ConfigurationError(
                f"{_KEY}: the text of {path!r} did not come with the request",
                code="reward_source_missing",
                hint="Send it as 'source' beside the path; TrainingJob.run of this SDK does so",
            )
        return RewardSpec(text=None, is_code=True, path=path)
    if not isinstance(source, str):
        raise rules.bad(f"{_KEY}.source", source, "must be text")
    return RewardSpec(text=source, is_code=True, path=path, function=_function_in(source, path))


def _function_in(source: str, file: str) -> str:
    if len(source) > LONGEST_SOURCE:
        raise rules.bad(_KEY, len(source), f"may have {LONGEST_SOURCE} characters at most")
    try:
        module = ast.parse(source, file)
    except SyntaxError as error:
        where = f"{file}, line {error.lineno}" if error.lineno else file
        line = f": {error.text.strip()[:80]!r}" if error.text else ""
        raise ConfigurationError(
            f"{_KEY}: {where} is no Python: {error.msg}{line}", code="invalid_reward_fn"
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise ConfigurationError(
            f"{_KEY}: {file} is no Python: {error}", code="invalid_reward_fn"
        ) from error
    functions = [node for node in module.body if isinstance(node, ast.FunctionDef)]
    named = [node for node in functions if node.name == FUNCTION]
    if not named and len(functions) != 1:
        raise ConfigurationError(
            f"{_KEY}: {file} has {len(functions)} functions, and none is named {FUNCTION!r}",
            code="invalid_reward_fn",
            hint=f"Write def {FUNCTION}(observation, action, reward, info): ...",
        )
    function = named[-1] if named else functions[0]
    _require_callable(function, file)
    return function.name


def _require_callable(function: ast.FunctionDef, file: str) -> None:
    taken = function.args
    positional = [*taken.posonlyargs, *taken.args]
    required: Sequence[ast.arg] = positional[: len(positional) - len(taken.defaults)]
    keyword_only = [
        name
        for name, default in zip(taken.kwonlyargs, taken.kw_defaults, strict=True)
        if default is None
    ]
    for argument in [*required, *keyword_only]:
        if argument.arg not in VARIABLES:
            raise ConfigurationError(
                f"{_KEY}: {function.name} in {file}, line {function.lineno}, asks for "
                f"{argument.arg!r}, which nobody gives",
                code="invalid_reward_fn",
                hint=f"A reward function may ask for {', '.join(VARIABLES)}",
            )
    if taken.posonlyargs:
        raise ConfigurationError(
            f"{_KEY}: {function.name} in {file}, line {function.lineno}, has parameters without "
            "names",
            code="invalid_reward_fn",
            hint="Take the / out: arguments are given by their names",
        )
