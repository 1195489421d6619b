"""In which forms a checkpoint can be given out, and what is written beside it; pure."""

import json
from collections.abc import Mapping
from typing import Final, Literal

ExportFormat = Literal["huggingface", "pytorch", "onnx", "openai_compatible"]

# Why a form is refused; the others are made.
UNAVAILABLE: Final[Mapping[str, str]] = {
    "onnx": "its policies are exported as torch tensors only",
    "openai_compatible": "its checkpoints are policies of environments, not language models",
}


def model_card(facts: Mapping[str, object]) -> str:
    """The README of a model repository: front matter that hubs read, then the facts."""
    lines = [
        "---",
        "library_name: stable-baselines3",
        "pipeline_tag: reinforcement-learning",
        "tags:",
        "- reinforcement-learning",
        "- stable-baselines3",
        "---",
        "",
        f"# {facts['checkpoint_id']}",
        "",
        "| fact | value |",
        "|---|---|",
    ]
    lines += [f"| {name} | {_cell(value)} |" for name, value in facts.items()]
    return "\n".join(lines) + "\n"


def config_json(facts: Mapping[str, object]) -> str:
    """The facts as the configuration file of a model repository."""
    return json.dumps(facts, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _cell(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.replace("|", "\\|").replace("\n", " ")
