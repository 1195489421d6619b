"""Policies that people already have, as models in one call."""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast

from rlcore import ConfigurationError, Error, MissingDependencyError

from rlmesh.models.loading_providers import load_address, load_with_manifest
from rlmesh.models.model import Model, ModelTypeError, is_model, is_model_class
from rlmesh.models.model_files import FileKind, kind_of
from rlmesh.models.outputs import ActionOption, checked_option

# Any, in this room: what models are of is told by their files.

_SUFFIXES: Final = (".zip", ".pt", ".pth", ".pt2", ".onnx", ".ckpt", ".ts")


def load_model(
    source: object,
    *,
    device: object = None,
    deterministic: bool = True,
    action: ActionOption = "auto",
    module: object = None,
    normalize: object = None,
    algorithm: object = None,
    name: str | None = None,
) -> Model[Any, Any]:
    """Return a policy that somebody has as a model that `rlmesh.run` takes.

    The source is one of

    - the zip file of a **stable-baselines3** algorithm, which is found out from the file. Loading
      it executes code that is pickled in the file: load only what you trust.
    - a **torch** module, or a file of one: TorchScript, a `.pt2` of `torch.export`, or a state dict
      together with `module`. State dicts are read without executing anything.
    - an **ONNX** file named `*.onnx`. Its inputs are matched by name to observations that are
      dictionaries.
    - a checkpoint of **rleaas**: its file, or `rleaas://checkpoints/ID`.

    Args:
        source: a path, an address, or a `torch.nn.Module`.
        device: where it computes, such as `"cuda:0"`.
        deterministic: take the best action. Otherwise actions are sampled, for which a torch or
            ONNX policy must put out scores for the choices of a discrete space.
        action: for torch and ONNX, how outputs become actions. `"auto"` goes by the action space:
            the highest score for Discrete and MultiDiscrete spaces (whole numbers are choices
            already), above zero for MultiBinary ones, clipped to the bounds for Box ones; Dict and
            Tuple spaces by their parts. `"argmax"` and `"tanh"` insist on the first, or on numbers
            that tanh brings into the bounds; `"raw"` takes outputs as they are. A function gets the
            outputs for a batch and returns a batch of actions.
        module: the module of a state dict, or what makes it.
        normalize: for stable-baselines3, the `VecNormalize` that it was trained with, or the path
            that this was saved to.
        algorithm: for stable-baselines3, the class where the file does not tell, or its name.
        name: what results call the model.

    Raises:
        ModelFileError: the file is missing, damaged, or of no kind that can be loaded.
        ConfigurationError: an option is wrong, or not for this kind of policy.
        ModelTypeError: the source is none of these.
        MissingDependencyError: the library that it needs is not installed.
    """
    action = checked_option(action)
    options = {
        "action": (action, action != "auto"),
        "module": (module, module is not None),
        "normalize": (normalize, normalize is not None),
        "algorithm": (algorithm, algorithm is not None),
    }
    given = {key: value for key, (value, is_given) in options.items() if is_given}
    common: dict[str, Any] = {"device": device, "deterministic": deterministic, "name": name}
    if is_model(source) or is_model_class(source):
        raise ModelTypeError(f"{source!r} is a Model already", hint="Use it as it is.")
    if _is_module(source):
        _refuse(given, ("action",), "a torch module")
        return cast("Model[Any, Any]", _torch().load_module(source, action=action, **common))
    if isinstance(source, str) and "://" in source:
        _refuse(given, (), "an address")
        return load_address(source, **common)
    if not isinstance(source, str | Path):
        raise ModelTypeError(
            f"{source!r} is nothing that can be loaded",
            hint="Give a path or an address; wrap functions and policies in rlmesh.numpy.Model.",
        )
    return _load_file(Path(source), given, common)


def model_from_text(source: str, *, native: bool = False, **options: Any) -> object:
    """Return the model that a command line names: a file, an address to load, MODULE:ATTRIBUTE.

    Args:
        source: as above, or `random`.
        native: wrap what is no model yet for `rlmesh.Tensor`, and not for numpy arrays.
        options: those of `load_model`, for what is loaded.

    Raises:
        ConfigurationError: there is no such thing.
    """
    from rlmesh.models.numpy_model import Model as NumpyModel
    from rlmesh.models.sentinels import RANDOM_SAMPLE

    if source.lower() in ("random", "random_sample"):
        return RANDOM_SAMPLE
    if "://" in source or names_file(source):
        return load_model(source, **options)
    found = attribute(source)
    if is_model(found) or is_model_class(found):
        return found
    found = made_of(found, source)
    if is_model(found) or is_model_class(found):
        return found
    if _is_module(found):
        return load_model(found, **options)
    return Model(found) if native else NumpyModel(found)


def made_of(found: object, source: str) -> object:
    """Return what a function without parameters makes; anything else as it is.

    What takes no observation is no policy.

    Raises:
        ConfigurationError: it raised.
    """
    if not inspect.isfunction(found) or inspect.signature(found).parameters:
        return found
    try:
        return found()
    except Error:
        raise
    except Exception as error:  # a user's function may raise anything
        what = f"{type(error).__name__}: {error}"
        raise ConfigurationError(
            f"cannot make a model with {source!r}: it raised {what}"
        ) from error


def names_file(source: str) -> bool:
    """Tell whether a text means a file of a policy, and not MODULE:ATTRIBUTE."""
    path = Path(source)
    return path.suffix.lower() in _SUFFIXES or path.is_file()


def attribute(source: str) -> object:
    """Return what MODULE:ATTRIBUTE names; attributes may be dotted.

    Raises:
        ConfigurationError: it is not of that form, there is no such module or attribute, or the
            module raises.
    """
    module_name, colon, path = source.partition(":")
    if not (colon and module_name and path):
        raise ConfigurationError(
            f"{source!r} is neither MODULE:ATTRIBUTE nor a file of a policy",
            hint=f"Files end in {', '.join(_SUFFIXES)}.",
        )
    try:
        found: object = import_module(module_name)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(f"cannot load {source!r}: {error}") from error
    except Exception as error:  # a user's module may raise anything while it is imported
        what = f"{type(error).__name__}: {error}"
        raise ConfigurationError(f"cannot load {source!r}: it raised {what}") from error
    return found


def _load_file(path: Path, given: dict[str, Any], common: dict[str, Any]) -> Model[Any, Any]:
    kind = kind_of(path)
    match kind:
        case FileKind.MANIFEST:
            _refuse(given, (), kind.value)
            return load_with_manifest(path, **common)
        case FileKind.SB3:
            _refuse(given, ("normalize", "algorithm"), kind.value)
            return cast("Model[Any, Any]", _sb3().load_sb3(path, **given, **common))
        case FileKind.ONNX:
            _refuse(given, ("action",), kind.value)
            return cast("Model[Any, Any]", _onnx().load_onnx(path, **given, **common))
        case _:
            weights = kind is FileKind.STATE_DICT
            _refuse(given, ("action", "module") if weights else ("action",), kind.value)
            return cast("Model[Any, Any]", _torch().load_torch_file(path, kind, **given, **common))


def _refuse(given: dict[str, Any], taken: tuple[str, ...], kind: str) -> None:
    wrong = [f"{key}=" for key in given if key not in taken]
    if wrong:
        raise ConfigurationError(f"{', '.join(wrong)} is not for {kind}", hint="Leave it out.")


def _is_module(source: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(source, torch.nn.Module)


def _torch() -> Any:
    return _room("loading_torch", "torch", "torch")


def _sb3() -> Any:
    return _room("loading_sb3", "stable_baselines3", "sb3")


def _onnx() -> Any:
    return _room("loading_onnx", "onnxruntime", "onnx")


def _room(room: str, library: str, extra: str) -> Any:
    try:
        import_module(library)
    except ImportError as error:
        raise MissingDependencyError(
            f"this policy needs {library}, which cannot be imported: {error}",
            hint=f"Install `rlmesh[{extra}]`.",
        ) from error
    return import_module(f"rlmesh.models.{room}")
