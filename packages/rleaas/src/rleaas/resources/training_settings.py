"""The settings of a training as callers give them: beside the config, or inside."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import Final, cast

from rlcore import ConfigurationError

from rleaas.resources.references import plain, require_type
from rleaas.training.rewards.spec import read_reward_file, validate_reward_fn
from rleaas.training.simulation import validate_simulation

Reward = str | Mapping[str, str] | Callable[..., float]
"""An expression, the path of a Python file, `{path}`, `{inline}`, or a function."""

_OTHER_NAMES: Final = {"n_envs": "num_envs"}
_FORMS: Final = ("path", "inline")


def merged(config: Mapping[str, object] | None, **told: object) -> dict[str, object]:
    """The config with what was said beside it, each thing under one name.

    Raises:
        ConfigurationError: something is said in two ways that contradict each other.
    """
    require_type({} if config is None else config, Mapping, "config")
    settings = dict(config or {})
    for other, name in _OTHER_NAMES.items():
        if other in settings:
            _say(settings, name, settings.pop(other), f"config.{other}")
    for key, value in told.items():
        if value is not None:
            name = _OTHER_NAMES.get(key, key)
            _say(settings, name, value if callable(value) else plain(value), key)
    if settings.get("simulation") is not None:
        validate_simulation(settings["simulation"])
    return settings


def reward_form(reward: object) -> object:
    """A reward function in one of its published forms; a function of Python as its source.

    Raises:
        ConfigurationError: it has none of the forms, or the function's source cannot be taken.
    """
    if isinstance(reward, str):
        if not reward.strip():
            raise _no_reward(reward)
        return reward.strip()
    if isinstance(reward, Mapping):
        return _object_form(cast("Mapping[str, object]", reward))
    if callable(reward):
        return {"type": "inline", "value": _source_of(reward)}
    raise _no_reward(reward)


def reward_to_send(reward: object) -> dict[str, object]:
    """A reward function as it travels: a file with its text, which is read here.

    Raises:
        ConfigurationError: it is none, or its file cannot be read.
        ExpressionError: an expression cannot be read; a caret shows where.
    """
    spec = validate_reward_fn(reward_form(reward), need_source=False)
    if spec is None:
        raise _no_reward(reward)
    if spec.path is not None and spec.text is None:
        found = read_reward_file(spec.path)
        validate_reward_fn(found)
        return found
    return spec.to_json()


def _say(settings: dict[str, object], name: str, value: object, said_as: str) -> None:
    inside = settings.get(name)
    if inside is not None and inside != value:
        raise ConfigurationError(
            f"{said_as} {value!r} contradicts config.{name} {inside!r}", hint=f"Give {name} once."
        )
    settings[name] = value


def _object_form(given: Mapping[str, object]) -> dict[str, object]:
    kind, value = given.get("type"), given.get("value")
    source = {"source": given["source"]} if given.get("source") is not None else {}
    if isinstance(kind, str) and kind.strip() in _FORMS and _is_said(value):
        return {"type": kind.strip(), "value": cast("str", value).strip(), **source}
    said = [form for form in _FORMS if _is_said(given.get(form))]
    if len(said) != 1:
        raise _no_reward(dict(given))
    return {said[0]: cast("str", given[said[0]]).strip(), **source}


def _is_said(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _source_of(function: Callable[..., object]) -> str:
    name = getattr(function, "__name__", repr(function))
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as error:
        raise ConfigurationError(
            f"reward_fn: the source of {name!r} cannot be taken: {error}",
            code="reward_source_missing",
            hint="Write it into a file and give its path, or give an expression",
        ) from error
    if name == "<lambda>" or not source.startswith("def "):
        raise ConfigurationError(
            f"reward_fn: {name!r} is no plain function",
            code="invalid_reward_fn",
            hint="Write def reward(observation, action, reward, info): ...",
        )
    around = inspect.getclosurevars(function)
    used = sorted({*around.nonlocals, *around.globals})
    if used:
        raise ConfigurationError(
            f"reward_fn: {name!r} uses {', '.join(used)} from around it, which is not sent with it",
            code="invalid_reward_fn",
            hint="Import and define what it needs inside the function",
        )
    return source


def _no_reward(value: object) -> ConfigurationError:
    return ConfigurationError(
        f"reward_fn {value!r} is no reward function",
        code="invalid_reward_fn",
        hint="Give an expression, a path, {path}, {inline}, {type, value} or a function.",
    )
