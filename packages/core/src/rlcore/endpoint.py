"""Where an environment is served, and which environment that is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Self, cast
from urllib.parse import quote, unquote

from rlcore.credentials import ANONYMOUS, Credential
from rlcore.errors import AddressError, ConfigurationError

SCHEME = "rleaas"
SHORT_DIGEST = len("sha256:") + 12

_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.*)", re.DOTALL)
# Bounded, as Python makes no number of a text with thousands of digits.
_VERSION = re.compile(r"[1-9][0-9]{0,99}", re.ASCII)
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_FORM = f"{SCHEME}://NAME or {SCHEME}://NAME@VERSION"


@dataclass(frozen=True, slots=True)
class EnvironmentIdentity:
    """Which environment a job, a checkpoint or a result belongs to."""

    name: str
    version: int | None
    contract_digest: str

    def to_dict(self) -> dict[str, str | int | None]:
        """Return the identity as JSON-ready values."""
        return {
            "name": self.name,
            "version": self.version,
            "contract_digest": self.contract_digest,
        }

    def __str__(self) -> str:
        version = "" if self.version is None else f"@{self.version}"
        return f"{self.name}{version} ({self.contract_digest[:SHORT_DIGEST]}…)"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What the control plane hands to the data plane: where to dial, as whom, what to find.

    Attributes:
        address: an address the data plane dials itself, such as `tcp://127.0.0.1:5000`.
        credential: what to show there.
        environment_id: the control plane's id of the environment.
        environment_name: its registered name.
        version: its registered version.
        contract_digest: the digest that the served contract must have.
        expires_at: when the credential ends, in seconds since the epoch.
        tls_fingerprint: `sha256:` and the digest of the server's certificate; None: it has no TLS.
        contract: the registered contract, so that a mismatch can say what differs.
    """

    address: str
    _: KW_ONLY
    credential: Credential = ANONYMOUS
    environment_id: int | None = None
    environment_name: str | None = None
    version: int | None = None
    contract_digest: str | None = None
    expires_at: float | None = None
    tls_fingerprint: str | None = None
    contract: Mapping[str, object] | None = field(default=None, repr=False, compare=False)

    @property
    def identity(self) -> EnvironmentIdentity | None:
        """The registered identity, or None where the endpoint was not handed out by a registry."""
        if self.environment_name is None or self.contract_digest is None:
            return None
        return EnvironmentIdentity(self.environment_name, self.version, self.contract_digest)

    def expired(self, now: float) -> bool:
        """Tell whether the credential has ended at `now`, in seconds since the epoch."""
        return self.expires_at is not None and now >= self.expires_at


@dataclass(frozen=True, slots=True)
class EnvironmentURI:
    """The name of a registered environment, and its version where one is asked for.

    Raises:
        ConfigurationError: the name is empty or has `#`, `?` or what does not print in it, or the
            version is not 1 or more.
    """

    name: str
    version: int | None = None

    def __post_init__(self) -> None:
        check_environment_name(self.name)
        if self.version is not None and (isinstance(self.version, bool) or self.version < 1):
            raise ConfigurationError(
                f"environment version {self.version!r} is not a whole number from 1",
                hint="Leave it out to get the current version.",
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `rleaas://NAME[@VERSION]`, with percent-escapes in the name.

        Raises:
            AddressError: it is not such a URI.
            ConfigurationError: the name in it is not one.
        """
        is_text = isinstance(cast("object", text), str)
        match = _URI.fullmatch(text.strip()) if is_text else None
        if match is None or match["scheme"].lower() != SCHEME:
            raise AddressError(f"{text!r} is not an environment URI", hint=f"Write {_FORM}.")
        name, at, version = match["rest"].partition("@")
        if at and not _VERSION.fullmatch(version):
            raise AddressError(
                f"{text!r} has {version!r} where a version number belongs", hint=f"Write {_FORM}."
            )
        return cls(_unescape(name, text), int(version) if at else None)

    def __str__(self) -> str:
        name = quote(self.name, safe="")
        return f"{SCHEME}://{name}" if self.version is None else f"{SCHEME}://{name}@{self.version}"


def check_environment_name(name: str) -> None:
    """Refuse a name that could not be written in a URI or a path.

    Raises:
        ConfigurationError: it is empty, has blanks at an end, or `#`, `?` in it.
    """
    if not name.strip():
        raise ConfigurationError(
            "an environment name is empty", hint="Give the environment a name."
        )
    if name != name.strip() or not name.isprintable() or any(mark in name for mark in "#?"):
        raise ConfigurationError(
            f"{name!r} is not an environment name",
            hint="Use printable characters without '#' or '?', and no blanks at the ends.",
        )


def _unescape(name: str, text: str) -> str:
    if _BROKEN_ESCAPE.search(name):
        raise AddressError(
            f"{text!r} has a broken escape in it", hint="Write a percent sign as %25."
        )
    try:
        return unquote(name, errors="strict")
    except UnicodeDecodeError as error:
        raise AddressError(
            f"the escapes in {text!r} are not UTF-8", hint="Escape the name as UTF-8."
        ) from error
