"""The model that a text names: an attribute of a module, or the file of a policy."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from rlcore import ConfigurationError

from rlmesh.models.loading import load_model, made_of
from rlmesh.models.model import Model, ModelTypeError, is_model, is_model_class
from rlmesh.models.numpy_model import Model as NumpyModel
from rlmesh.server.sources import FILES, PYTHON, attribute_of, is_gymnasium_id

# Any, in this room: which observations and actions a model is for is its own to say.

CHECKPOINTS: Final = "rleaas://checkpoints/"


def model_behind(
    source: str, kwargs: Mapping[str, object], *, insist: bool = False
) -> Model[Any, Any] | None:
    """Return the model that a source names, or None where it names an environment.

    A `Model` is used as it is, a class of models made with `from_config`; a policy with `predict`,
    or a function of an observation, is wrapped in `rlmesh.numpy.Model`. A function that can be
    called with the keyword arguments alone makes environments; with `insist`, one without
    parameters makes a model.

    Args:
        source: `module:attribute`, the file of a policy, or `rleaas://checkpoints/ID`.
        kwargs: what it is made or loaded with.
        insist: a model is wanted: what makes something without arguments is asked for one.

    Raises:
        ConfigurationError: the source names nothing; with `insist`, it names no model.
        Error: the model does not load.
    """
    text = source.strip()
    if _is_policy_file(text):
        return load_model(text, **cast("dict[str, Any]", kwargs))
    if is_gymnasium_id(text):
        if insist:
            raise ConfigurationError(
                f"{text!r} is an environment of gymnasium, not a model",
                hint="Write module:attribute, or the file of a policy.",
            )
        return None
    found: Any = attribute_of(text.removeprefix(PYTHON))
    if is_model_class(found):
        return found.from_config(**kwargs)
    if is_model(found) or _is_network(found) or _is_policy(found):
        return _made(found, text, kwargs)
    if insist and not kwargs and (made := made_of(found, text)) is not found:
        return given_model(made, {})
    if insist or _takes_observation(found, kwargs):
        return _wrapped(found, text, kwargs)
    return None


def given_model(source: object, kwargs: Mapping[str, object]) -> Model[Any, Any]:
    """Return the model that a program has: one as it is, or what becomes one, as in `model_behind`.

    Raises:
        ConfigurationError: it is no model, or is made already and is given arguments.
        Error: the model does not load.
    """
    found: Any = source
    if is_model_class(found):
        return found.from_config(**kwargs)
    name = getattr(found, "__qualname__", type(found).__qualname__)
    if is_model(found) or _is_network(found) or _is_policy(found):
        return _made(found, name, kwargs)
    return _wrapped(found, name, kwargs)


def _made(found: Any, text: str, kwargs: Mapping[str, object]) -> Model[Any, Any]:
    if isinstance(found, type):
        return NumpyModel(cast("Callable[..., object]", found)(**kwargs))
    if kwargs:
        raise _made_already(text, found)
    if is_model(found):
        return found
    return load_model(found) if _is_network(found) else NumpyModel(found)


def _wrapped(found: Any, text: str, kwargs: Mapping[str, object]) -> Model[Any, Any]:
    if kwargs:
        raise _made_already(text, found)
    if callable(getattr(found, "make", None)) or _is_environment(found):
        raise ModelTypeError(f"{text!r} is {found!r}, which is no model", hint="Give it as --env.")
    return NumpyModel(found)


def _made_already(text: str, found: object) -> ConfigurationError:
    return ConfigurationError(
        f"{text!r} is {found!r}, which is made already and takes no keyword arguments",
        hint="Name a class of models, whose load() takes them.",
    )


def _is_policy_file(text: str) -> bool:
    if text.startswith(CHECKPOINTS):
        return True
    return text.lower().endswith(FILES) and (":" not in text or Path(text).exists())


def _is_network(found: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(found, torch.nn.Module)


def _is_policy(found: object) -> bool:
    makes = callable(getattr(found, "make", None))
    return callable(getattr(found, "predict", None)) and not makes and not _is_environment(found)


def _is_environment(found: object) -> bool:
    return all(callable(getattr(found, name, None)) for name in ("reset", "step"))


def _takes_observation(found: object, kwargs: Mapping[str, object]) -> bool:
    """Tell whether it is a function that has to be given something more, such as what is seen."""
    if isinstance(found, type) or not callable(found) or callable(getattr(found, "make", None)):
        return False
    if _is_environment(found):
        return False
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):  # builtins and extension functions have none to read
        return False
    if _binds(signature, (), kwargs):
        return False
    told = {**kwargs, "context": None}
    return _binds(signature, (None,), kwargs) or _binds(signature, (None,), told)


def _binds(
    signature: inspect.Signature, arguments: tuple[object, ...], kwargs: Mapping[str, object]
) -> bool:
    try:
        signature.bind(*arguments, **kwargs)
    except TypeError:
        return False
    return True
