"""A checkpoint as the files of a model repository on a hub, in one zip."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rleaas.training.checkpoint_file import WEIGHTS, members, read_member
from rleaas.training.exports.inputs import NetworkInputs
from rleaas.training.loaded_policy import LoadedPolicy
from rleaas.training.whole_archive import whole_archive

# Where a language model's file has what its library reads.
_LIBRARY: Final = "hf/"
_LIBRARIES: Final[Mapping[str, str]] = {"sb3": "stable-baselines3", "slm": "transformers"}


def write_huggingface(
    policy: LoadedPolicy,
    checkpoint_id: str,
    source: Path,
    weights: bytes,
    target: Path,
    facts: Mapping[str, object] | None,
) -> dict[str, object]:
    """Write the zip, and return the names of its files.

    It has `model.safetensors` and `config.json`; for policies `preprocessing.json`, and the
    checkpoint itself, which `rlmesh.load_model` and the library's own `load` read; for language
    models what transformers reads. With facts there is a model card, `README.md`.
    """
    own = members(source)
    manifest = policy.manifest
    files: dict[str, bytes | Path] = {"model.safetensors": weights}
    for name in own:
        plain = name.removeprefix(_LIBRARY)
        if name.startswith(_LIBRARY) and plain and ".." not in plain.split("/"):
            files[plain] = read_member(source, name)
    if "config.json" not in files:
        _, example = policy.network()
        inputs = NetworkInputs(manifest, example)
        files["config.json"] = _json(
            {
                "model_type": f"rleaas-{manifest.family}",
                "algorithm": manifest.algorithm,
                "family": manifest.family,
                "network": dict(manifest.network) or {"policy": manifest.policy, **_kwargs(policy)},
                "observation_space": dict(manifest.observation_space),
                "action_space": dict(manifest.action_space),
                "facts": dict(facts or {}),
            }
        )
        files["preprocessing.json"] = _json(inputs.described())
        files[f"{checkpoint_id}.zip"] = source
    if facts is not None:
        files["README.md"] = _card(policy, checkpoint_id, facts).encode()
    with whole_archive(target) as archive:
        for name in sorted(files):
            archive.add(name, files[name])
    return {"files": sorted(files)}


def has_weights(source: Path) -> bool:
    """Whether the file has its weights as safetensors already."""
    return WEIGHTS in members(source)


def _kwargs(policy: LoadedPolicy) -> dict[str, object]:
    return {"policy_kwargs": dict(policy.manifest.policy_kwargs)}


def _json(data: Mapping[str, object]) -> bytes:
    return (json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _card(policy: LoadedPolicy, checkpoint_id: str, facts: Mapping[str, object]) -> str:
    """The README of a model repository: front matter that hubs read, how to use it, the facts."""
    is_text = policy.manifest.family == "slm"
    library = _LIBRARIES.get(policy.manifest.family, "rleaas")
    tags = ["reinforcement-learning", *([] if library == "rleaas" else [library]), "rleaas"]
    use = (
        'AutoModelForCausalLM.from_pretrained("this folder")'
        if is_text
        else f'rlmesh.load_model("{checkpoint_id}.zip").predict(observation)'
    )
    lines = [
        "---",
        f"library_name: {library}",
        f"pipeline_tag: {'text-generation' if is_text else 'reinforcement-learning'}",
        "tags:",
        *(f"- {tag}" for tag in tags),
        "---",
        "",
        f"# {checkpoint_id}",
        "",
        f"`{use}`",
        "",
        "| fact | value |",
        "|---|---|",
        *(f"| {name} | {_cell(value)} |" for name, value in facts.items()),
    ]
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.replace("|", "\\|").replace("\n", " ")
