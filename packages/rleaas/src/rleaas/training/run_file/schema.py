"""The JSON Schema of config.json, made of the tables that its checks are made of.

What it cannot say, `check` knows: that ids are there once, that files of reward functions exist,
and what several settings must be together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rleaas.training.algorithms import ALGORITHMS
from rleaas.training.config import COMMON, valid_keys
from rleaas.training.config_rules import LONGEST_NAME
from rleaas.training.hyperparameters import HYPERPARAMETERS
from rleaas.training.run_file.entries import (
    DEFAULT_ALGORITHM,
    DEFAULT_EPISODES,
    DEFAULT_MAX_STEPS,
    REQUIRED,
)

Schema = dict[str, object]

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"

_COUNT: Final = {"type": "integer", "minimum": 1}
_SAID: Final = {"type": "string", "pattern": r"\S"}
_NAME: Final = {**_SAID, "maxLength": LONGEST_NAME}
_TEXT: Final = {"type": "string"}
_WORD: Final = {**_TEXT, "maxLength": LONGEST_NAME}


def config_schema() -> Schema:
    """Return the schema of a whole config.json, draft 2020-12."""
    return {
        "$schema": DRAFT,
        "$id": "urn:rleaas:config.schema",
        "title": "config.json of rleaas",
        "description": "The trainings that `python -m rleaas.training_cli start` starts.",
        "type": "object",
        "required": ["training"],
        "properties": {
            "training": {"type": "array", "minItems": 1, "items": _entry()},
            "api_key": _told(_TEXT, "the API key; a local server needs none", None),
            "base_url": _told(_TEXT, "the server", "http://localhost:8000"),
        },
    }


def _entry() -> Schema:
    properties: dict[str, Schema] = {
        "training": {
            "description": "the id of the run, once in a file",
            "anyOf": [{"type": "integer"}, {"type": "string", "pattern": r"^[^,]*[^\s,][^,]*$"}],
        },
        "environment_name": {**_NAME, "description": "the environment to train on"},
        "name": _told(_WORD, "what the run is called", None),
        "description": _told(COMMON["description"].schema, "what the run is for", None),
        "agent_id": _told(_WORD, "the agent that is trained", None),
        "scenario_id": _told(_WORD, "the scenario or suite of the run", None),
        "verifier_ids": _told({"type": "array", "items": _NAME}, "what judges the episodes", None),
        "algorithm": _algorithm(),
        "max_steps": _told(_COUNT, "the most steps of an episode", DEFAULT_MAX_STEPS),
        "episodes": _told(_COUNT, "the number of episodes", DEFAULT_EPISODES),
        "reward_fn": _told(_REWARD, "the reward function: a file or an expression", None),
        "simulation": _told(COMMON["simulation"].schema, COMMON["simulation"].meaning, None),
        "config": _config(),
        "resume_from_checkpoint": _told(_WORD, "the id of a checkpoint to go on from", None),
        "priority": _told(
            {"type": "integer", "minimum": -100, "maximum": 100}, "higher ones run first", 0
        ),
    }
    return {
        "type": "object",
        "required": list(REQUIRED),
        "properties": properties,
        "additionalProperties": False,
        "allOf": [_keys_for(name) for name in ALGORITHMS] + [_keys_without_algorithm()],
    }


def _told(schema: Mapping[str, object], meaning: str, default: object) -> Schema:
    """Return a schema that also takes null, which is the same as leaving the key out."""
    told: Schema = {"description": meaning, "anyOf": [dict(schema), {"type": "null"}]}
    if default is not None:
        told["default"] = default
    return told


_REWARD: Final[Mapping[str, object]] = {
    "anyOf": [
        _SAID,
        {
            "type": "object",
            "required": ["type", "value"],
            "properties": {
                "type": {"type": "string", "pattern": r"^\s*(path|inline)\s*$"},
                "value": _SAID,
            },
        },
        {
            "type": "object",
            "propertyNames": {"enum": ["path", "inline", "type", "value"]},
            "oneOf": [
                {"required": ["path"], "properties": {"path": _SAID}},
                {"required": ["inline"], "properties": {"inline": _SAID}},
            ],
        },
    ]
}


def _algorithm() -> Schema:
    names = list(ALGORITHMS)
    # Editors offer the words of `enum`; the pattern takes them in any spelling.
    choices: list[Mapping[str, object]] = [{"enum": names}, _spelled(names)]
    return _told({"anyOf": choices}, "what trains", DEFAULT_ALGORITHM)


def _spelled(names: Sequence[str]) -> Schema:
    words = ("".join(f"[{c}{c.lower()}]" if c.isalpha() else c for c in one) for one in names)
    return {"type": "string", "pattern": rf"^\s*({'|'.join(words)})\s*$"}


def _config() -> Schema:
    rules = {**COMMON, **HYPERPARAMETERS}
    properties = {key: _told(rule.schema, rule.meaning, None) for key, rule in rules.items()}
    overruled = "counts where the entry does not say it itself"
    properties |= {
        "n_envs": _told(COMMON["num_envs"].schema, "another name of num_envs", None),
        "algorithm": {**_algorithm(), "description": overruled},
        "reward_fn": _told(_REWARD, overruled, None),
        **{
            key: _told(_COUNT, overruled, None)
            for key in ("episodes", "num_episodes", "max_steps", "max_steps_per_episode")
        },
    }
    told = _told({"type": "object", "properties": properties}, "settings of the algorithm", None)
    return {**told, "examples": [{"learning_rate": 0.0003, "checkpoint_interval": 100}]}


def _only(name: str) -> Schema:
    keys = sorted({*valid_keys(name), "reward_fn"})
    return {"properties": {"config": {"propertyNames": {"enum": keys}}}}


def _keys_for(name: str) -> Schema:
    """Return what holds where an entry names this algorithm."""
    named: Schema = {"required": ["algorithm"], "properties": {"algorithm": _spelled([name])}}
    inside: Schema = {"required": ["config"], "properties": {"config": named}}
    condition: Schema = {"anyOf": [named, {"allOf": [_UNNAMED, inside]}]}
    return {"if": condition, "then": _only(name)}


def _keys_without_algorithm() -> Schema:
    inside: Schema = {"properties": {"config": {"anyOf": [_UNNAMED, {"not": {"type": "object"}}]}}}
    return {"if": {"allOf": [_UNNAMED, inside]}, "then": _only(DEFAULT_ALGORITHM)}


_UNNAMED: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {"algorithm": {"type": "null"}},
}
"""No algorithm is named: there is no such key, or null in it."""
