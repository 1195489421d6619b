"""Settings, resolved once at the edge, which remember where each came from.

The order is argument, environment variable, profile file, default: the first that has a value wins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from rlcore.credentials import ANONYMOUS, ApiKey, Credential
from rlcore.environ import snapshot, variable
from rlcore.errors import ConfigurationError
from rlcore.profiles import Profile, default_path, load_profile
from rlcore.secret import Secret

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Setting(Generic[T_co]):
    """One setting: its name, the variable that sets it, how a value is read, and its default."""

    name: str
    variable: str
    read: Callable[[object], T_co]
    default: T_co


@dataclass(frozen=True, slots=True)
class Layer:
    """Values from one place; `describe(name)` says where a value of it came from."""

    values: Mapping[str, object]
    describe: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Resolved(Generic[T]):
    """A setting's value and its source."""

    value: T
    source: str


def resolve_setting(setting: Setting[T], layers: Sequence[Layer]) -> Resolved[T]:
    """Return the value of the first layer that has one, else the default.

    Raises:
        ConfigurationError: that layer's value is not one for this setting.
    """
    for layer in layers:
        raw = layer.values.get(setting.name)
        if raw is None:
            continue
        try:
            return Resolved(setting.read(raw), layer.describe(setting.name))
        except ValueError as error:
            raise ConfigurationError(
                f"{setting.name} from {layer.describe(setting.name)} is not usable: {error}",
                hint=f"Correct it, or leave it out to get {setting.default!r}.",
            ) from error
    return Resolved(setting.default, "default")


def environment_layer(settings: Sequence[Setting[object]], environ: Mapping[str, str]) -> Layer:
    """Return the layer of environment variables; an empty variable counts as missing."""
    names = {setting.name: setting.variable for setting in settings}
    return Layer(
        {name: variable(key, environ) for name, key in names.items()},
        lambda name: f"environment variable {names[name]}",
    )


def profile_layer(profile: Profile, settings: Sequence[Setting[object]]) -> Layer:
    """Return the layer of a profile.

    Raises:
        ConfigurationError: the profile has a key that is no setting.
    """
    known = {setting.name for setting in settings}
    unknown = sorted(set(profile.values) - known)
    if unknown:
        raise ConfigurationError(
            f"profile {profile.name!r} in {str(profile.path)!r} has unknown keys: "
            f"{', '.join(unknown)}",
            hint=f"Known are {', '.join(sorted(known))}.",
        )
    return Layer(profile.values, lambda _: f"profile {profile.name!r} in {str(profile.path)!r}")


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """What a control-plane client needs to know.

    Attributes:
        base_url: the server's address, without a slash at its end.
        credential: who is asking.
        timeout: seconds that one request may take.
        retries: how many attempts a request that is safe to repeat gets.
        sources: where each of them came from.
    """

    base_url: str
    credential: Credential
    timeout: float
    retries: int
    sources: Mapping[str, str]

    def source(self, name: str) -> str:
        """Tell where a setting came from, such as `environment variable RLEAAS_BASE_URL`.

        Raises:
            ConfigurationError: there is no such setting.
        """
        if name not in self.sources:
            raise ConfigurationError(
                f"there is no setting {name!r}", hint=f"There are {', '.join(self.sources)}."
            )
        return self.sources[name]


def read_url(value: object) -> str:
    """Read an http or https address, without the slash at its end."""
    text = _read_text(value).rstrip("/")
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{text!r} is not an http:// or https:// address")
    if parts.query or parts.fragment:
        raise ValueError(f"{text!r} has a query or fragment")
    _ = parts.port  # urlsplit checks the port only when it is asked for: ValueError
    return text


def read_seconds(value: object) -> float:
    """Read a positive, finite number of seconds."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is not a number of seconds")
    seconds = float(value)
    if not math.isfinite(seconds) or seconds <= 0:
        raise ValueError(f"{value!r} is not a positive number of seconds")
    return seconds


def read_attempts(value: object) -> int:
    """Read a number of attempts, 1 or more."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"{value!r} is not a whole number")
    attempts = int(value)
    if attempts < 1:
        raise ValueError(
            f"{value!r} attempts are too few: the first one counts, so it is 1 or more"
        )
    return attempts


def read_key(value: object) -> Secret | None:
    """Read an API key; an empty one is none."""
    text = value.reveal() if isinstance(value, Secret) else _read_text(value)
    text = text.strip()
    if not text.isascii() or any(character.isspace() for character in text):
        # The text itself stays out of the message.
        raise ValueError("an API key has no blanks in it and only ASCII characters")
    return Secret(text) if text else None


def _read_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not text")
    return value.strip()


BASE_URL = Setting("base_url", "RLEAAS_BASE_URL", read_url, "http://localhost:8000")
API_KEY: Setting[Secret | None] = Setting("api_key", "RLEAAS_API_KEY", read_key, None)
TIMEOUT = Setting("timeout", "RLEAAS_TIMEOUT", read_seconds, 30.0)
RETRIES = Setting("retries", "RLEAAS_RETRIES", read_attempts, 3)
CLIENT_SETTINGS: tuple[Setting[object], ...] = (BASE_URL, API_KEY, TIMEOUT, RETRIES)
PROFILE_VARIABLE = "RLEAAS_PROFILE"


def resolve_client_settings(
    *,
    base_url: str | None = None,
    api_key: str | Secret | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    profile: str | None = None,
    environ: Mapping[str, str] | None = None,
    config_path: Path | None = None,
) -> ClientSettings:
    """Return a client's settings from arguments, environment variables, a profile and defaults.

    An empty `api_key` counts as missing, as an empty variable does.

    Raises:
        ConfigurationError: a value is not usable, or the profile is not there.
    """
    variables = snapshot() if environ is None else environ
    arguments: dict[str, object] = {
        "base_url": base_url,
        "api_key": api_key or None,
        "timeout": timeout,
        "retries": retries,
    }
    layers = [
        Layer(arguments, lambda _: "argument"),
        environment_layer(CLIENT_SETTINGS, variables),
    ]
    found = load_profile(
        default_path(variables) if config_path is None else config_path,
        variable(PROFILE_VARIABLE, variables) if profile is None else profile,
    )
    if found is not None:
        layers.append(profile_layer(found, CLIENT_SETTINGS))
    url = resolve_setting(BASE_URL, layers)
    key = resolve_setting(API_KEY, layers)
    seconds = resolve_setting(TIMEOUT, layers)
    attempts = resolve_setting(RETRIES, layers)
    return ClientSettings(
        base_url=url.value,
        credential=ANONYMOUS if key.value is None else ApiKey(key.value),
        timeout=seconds.value,
        retries=attempts.value,
        sources={
            "base_url": url.source,
            "api_key": key.source,
            "timeout": seconds.source,
            "retries": attempts.source,
        },
    )
