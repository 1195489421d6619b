"""Which trackers get a job's numbers: the `tracking` of a config. No tracker is imported."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final
from urllib.parse import urlsplit

from rlcore import ConfigurationError

from rleaas.training import config_rules as rules

KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "tensorboard": (),
    "mlflow": ("tracking_uri", "experiment", "run_name"),
    "wandb": ("project", "entity", "mode", "name"),
}
"""The trackers, and what may be set of each."""

PACKAGES: Final[Mapping[str, str]] = {
    "tensorboard": "tensorboard",
    "mlflow": "mlflow",
    "wandb": "wandb",
}
"""The module that each needs."""

WANDB_MODES: Final = ("online", "offline")
_SECRETS: Final[Mapping[str, str]] = {
    "api_key": "WANDB_API_KEY",
    "key": "WANDB_API_KEY",
    "password": "MLFLOW_TRACKING_PASSWORD",
    "token": "MLFLOW_TRACKING_TOKEN",
    "username": "MLFLOW_TRACKING_USERNAME",
}

_NAME: Final[Mapping[str, object]] = {
    "type": "string",
    "pattern": r"\S",
    "maxLength": rules.LONGEST_NAME,
}


def _schema(properties: Mapping[str, object]) -> Mapping[str, object]:
    told = {key: {"anyOf": [one, {"type": "null"}]} for key, one in properties.items()}
    inner = {"type": "object", "properties": told, "additionalProperties": False}
    return {"anyOf": [{"type": "boolean"}, inner, {"type": "null"}]}


TRACKING_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {
        "tensorboard": _schema({}),
        "mlflow": _schema(
            {
                "tracking_uri": {"type": "string", "pattern": r"^https?://[A-Za-z0-9][^\s@?#]*$"},
                "experiment": _NAME,
                "run_name": _NAME,
            }
        ),
        "wandb": _schema(
            {
                "project": _NAME,
                "entity": _NAME,
                "mode": {"enum": list(WANDB_MODES)},
                "name": _NAME,
            }
        ),
    },
    "additionalProperties": False,
}
"""The same rules as JSON Schema."""


def validate_tracking(key: str, value: object) -> dict[str, dict[str, str]]:
    """The settings of each tracker that is asked for.

    Raises:
        ConfigurationError: naming the key; for a secret, which nothing of a request may hold, with
            the variable of the server's that takes it.
    """
    asked: dict[str, dict[str, str]] = {}
    for name, told in rules.mapping(key, value).items():
        if name not in KEYS:
            raise rules.unknown(name, key, tuple(KEYS))
        if told is None or told is False:
            continue
        given: Mapping[str, object] = {}
        if told is not True:
            given = rules.mapping(f"{key}.{name}", told)
        asked[name] = _settings(f"{key}.{name}", name, given)
    return asked


def _settings(key: str, tracker: str, given: Mapping[str, object]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for name, value in given.items():
        if name in _SECRETS:
            raise ConfigurationError(
                f"{key}.{name} would be stored with the job",
                code="secret_in_config",
                hint=f"Set {_SECRETS[name]} where the server is started.",
            )
        if name not in KEYS[tracker]:
            raise rules.unknown(name, key, KEYS[tracker])
        if value is None:
            continue
        place = f"{key}.{name}"
        if name == "mode":
            settings[name] = rules.one_of(WANDB_MODES)(place, value)
        elif name == "tracking_uri":
            settings[name] = _address(place, value)
        else:
            settings[name] = rules.name(place, rules.short_text(place, value))
    return settings


def _address(key: str, value: object) -> str:
    # A path would be one of the server's disk.
    text = rules.long_text(key, value)
    plain = not set(text) & set("@?#") and not any(one.isspace() for one in text)
    try:
        host = urlsplit(text).hostname or ""
    except ValueError:
        host = ""
    if not plain or not text.startswith(("http://", "https://")) or not host[:1].isalnum():
        raise rules.bad(
            key,
            "an address" if "@" in text else value,
            "must be an http:// or https:// address without credentials",
        )
    return text


def missing_packages(tracking: Mapping[str, object]) -> list[str]:
    """Return the names of the trackers whose packages are not installed here."""
    return [name for name in tracking if find_spec(PACKAGES[name]) is None]
