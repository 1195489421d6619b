"""What a language model's checkpoint holds: files of Hugging Face, and the trainer's state."""

# transformers, peft and torch leave most of their types open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import safetensors.torch
import torch
from rlcore import ConfigurationError

from rleaas.training.checkpoint_file import members, read_member, read_weights
from rleaas.training.slm.model import Speaker, load_speaker

LAYOUT = "hf/"
"""Members below this are a model directory of Hugging Face; its weights are the policy's."""
ADAPTER = "adapter/"
_ADAPTER_WEIGHTS = "adapter_model.safetensors"


def network_weights(speaker: Speaker) -> dict[str, torch.Tensor]:
    """The weights that act, under the names of the model's own library; an adapter is merged."""
    model = speaker.model
    if not _is_adapted(model):
        return dict(model.state_dict())
    base = model.get_base_model()
    weights = {
        name.replace(".base_layer.", "."): tensor
        for name, tensor in base.state_dict().items()
        if ".lora_" not in name
    }
    # Added here and not by the library's merging and unmerging, which would leave rounding behind
    # in the weights that are trained on.
    for name, module in base.named_modules():
        delta = getattr(module, "get_delta_weight", None)
        if delta is not None:
            weights[f"{name}.weight"] = module.base_layer.weight.detach() + delta("default")
    return weights


def layout_files(speaker: Speaker) -> dict[str, bytes | Path]:
    """The other files of a Hugging Face model directory, and the adapter's where there is one."""
    model = speaker.model
    found: dict[str, bytes | Path] = {}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        base = model.get_base_model() if _is_adapted(model) else model
        base.config.save_pretrained(directory)
        base.generation_config.save_pretrained(directory)
        speaker.tokenizer.save_pretrained(directory)
        for file in sorted(path for path in directory.rglob("*") if path.is_file()):
            found[LAYOUT + file.relative_to(directory).as_posix()] = file.read_bytes()
    if _is_adapted(model):
        with tempfile.TemporaryDirectory() as name:
            model.peft_config["default"].save_pretrained(name)
            found[ADAPTER + "adapter_config.json"] = Path(name, "adapter_config.json").read_bytes()
        found[ADAPTER + _ADAPTER_WEIGHTS] = safetensors.torch.save(adapter_weights(model))
    return found


def adapter_weights(model: Any) -> dict[str, torch.Tensor]:  # a PeftModel's
    """The weights of the adapter alone."""
    from peft import get_peft_model_state_dict

    weights = cast("Mapping[str, torch.Tensor]", get_peft_model_state_dict(model))
    return {name: tensor.detach().contiguous().clone() for name, tensor in weights.items()}


def restore_adapter(model: Any, path: Path) -> None:  # a PeftModel
    """Put the adapter of a checkpoint into the model.

    Raises:
        ConfigurationError: the checkpoint has none, or another one.
    """
    from peft import set_peft_model_state_dict

    try:
        weights = safetensors.torch.load(read_member(path, ADAPTER + _ADAPTER_WEIGHTS))
        missed = cast("Any", set_peft_model_state_dict(model, weights))
    except (RuntimeError, KeyError, ValueError) as error:
        raise _other(path, str(error)) from error
    if missed.unexpected_keys:
        raise _other(path, f"it has {missed.unexpected_keys[0]!r}")


def read_speaker(path: Path, directory: Path) -> Speaker:
    """The model and tokenizer of a verified policy file, by way of an empty directory.

    Raises:
        ConfigurationError: the file holds no language model.
    """
    for name in members(path):
        if name.startswith(LAYOUT) and ".." not in name:
            file = directory / name.removeprefix(LAYOUT)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(read_member(path, name))
    weights = read_weights(path)
    (directory / "model.safetensors").write_bytes(
        safetensors.torch.save(_untied(weights), metadata={"format": "pt"})
    )
    return load_speaker(directory)


def _untied(weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.contiguous().clone() for name, tensor in weights.items()}


def _is_adapted(model: Any) -> bool:
    return hasattr(model, "peft_config") and hasattr(model, "get_base_model")


def _other(path: Path, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"checkpoint {path.name!r} has another adapter: {why}",
        code="checkpoint_incompatible",
        hint="Resume with the lora settings that it was trained with",
    )
