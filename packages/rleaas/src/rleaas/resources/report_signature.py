"""Whether a report is, byte for byte, what a platform signed; nobody has to be asked for it."""

from __future__ import annotations

import base64
import binascii
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rlcore import MissingDependencyError, ReportNotVerified

from rleaas.models.report_key import VerifiedReport

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

SUFFIX: Final = ".sig"
"""A signature lies beside its report, in a file of the same name and this ending."""
_SCHEME: Final = "ed25519"
_LONGEST: Final = 4096


def verify_report(
    path: str | Path,
    signature: str | Path | None = None,
    public_key: str | Path = "",
    *,
    sha256: str | None = None,
) -> VerifiedReport:
    """Check a report against its signature, without a server.

    Args:
        path: the report's file.
        signature: what `export_audit_report(signature=True)` gave, or a file that has it; without
            one, the file beside the report that ends in `.sig`.
        public_key: the platform's key as PEM, or a file that has it.
        sha256: the digest that was told, where that shall be checked too.

    Raises:
        ReportNotVerified: the report was altered, another key signed it, or the signature or the
            key is missing or cannot be read; its `code` says which.
        MissingDependencyError: the package `cryptography` is not installed.
        OSError: the report cannot be read.
    """
    file = Path(path)
    key, key_id = _key(_text(file, public_key, "public_key"), file)
    told_id, signed = _signature(file, signature)
    content = file.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if sha256 is not None and digest != sha256.lower().removeprefix("sha256:"):
        raise _refused(file, "report_altered", f"its SHA-256 is {digest}, not {sha256}")
    if told_id != key_id:
        raise _refused(
            file, "report_of_another_key", f"key {told_id} signed it, and this one is {key_id}"
        )
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signed, content)
    except InvalidSignature as error:
        raise _refused(
            file, "report_altered", "its bytes are not those that were signed"
        ) from error
    return VerifiedReport(
        file=str(file.absolute()), sha256=digest, size_bytes=len(content), key_id=key_id
    )


def key_id_of(raw: bytes) -> str:
    """What signatures call a public key of these 32 bytes."""
    return hashlib.sha256(raw).hexdigest()[:16]


def signature_text(key_id: str, signed: bytes) -> str:
    """A signature as it is sent and kept: scheme, key and bytes."""
    return f"{_SCHEME}:{key_id}:{base64.b64encode(signed).decode()}"


def _signature(report: Path, given: str | Path | None) -> tuple[str, bytes]:
    beside = report.with_name(report.name + SUFFIX)
    if given is None and not beside.is_file():
        raise _refused(
            report,
            "signature_missing",
            f"there is no signature: none was given, and {beside.name!r} is not beside it",
        )
    text = _text(report, beside if given is None else given, "signature")
    scheme, _, rest = text.partition(":")
    key_id, _, encoded = rest.partition(":")
    try:
        signed = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _unreadable(report, "signature", "is not base64") from error
    if scheme != _SCHEME or not key_id or len(signed) != 64:
        raise _unreadable(report, "signature", f"is not {_SCHEME}:KEY:BASE64")
    return key_id, signed


def _key(text: str, report: Path) -> tuple[Ed25519PublicKey, str]:
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as error:
        raise MissingDependencyError(
            "checking a signature needs 'cryptography', which is not installed",
            hint="Install it: pip install cryptography",
        ) from error
    try:
        key = serialization.load_pem_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _unreadable(report, "public_key", "is no public key as PEM") from error
    if not isinstance(key, Ed25519PublicKey):
        raise _unreadable(report, "public_key", "is of another kind than Ed25519")
    return key, key_id_of(key.public_bytes_raw())


def _text(report: Path, given: str | Path, what: str) -> str:
    """The text itself, or what the file of this name has."""
    if not str(given).strip():
        raise _refused(report, f"{what}_missing", f"no {what.replace('_', ' ')} was given")
    if isinstance(given, str) and ("\n" in given or given.startswith(f"{_SCHEME}:")):
        return given.strip()
    try:
        with Path(given).open("rb") as file:
            content = file.read(_LONGEST + 1)
        if len(content) > _LONGEST:
            raise _unreadable(report, what, f"in {str(given)!r} is longer than any")
        return content.decode().strip()
    except OSError as error:
        raise _unreadable(
            report, what, f"file {str(given)!r} cannot be read: {error.strerror}"
        ) from error
    except UnicodeDecodeError as error:
        raise _unreadable(report, what, f"in {str(given)!r} is no text") from error


def _unreadable(report: Path, what: str, why: str) -> ReportNotVerified:
    return _refused(report, f"{what}_unreadable", f"the {what.replace('_', ' ')} {why}")


def _refused(report: Path, code: str, why: str) -> ReportNotVerified:
    return ReportNotVerified(str(report), why, code=code)
