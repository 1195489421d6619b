from __future__ import annotations

import base64
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from rleaas import ReportNotVerified, verify_report
from rleaas.server.keys import ServerKeys

CONTENT = b'{"overall_score": 0.97}\n'


def pem(key: Ed25519PrivateKey | X25519PrivateKey) -> str:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form).decode()


@pytest.fixture
def keys(tmp_path: Path) -> ServerKeys:
    return ServerKeys(tmp_path / "server.key")


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.json"
    path.write_bytes(CONTENT)
    return path


def refused(report: Path, signature: str | Path | None, key: str | Path, **told: str) -> str:
    with pytest.raises(ReportNotVerified) as refusal:
        verify_report(report, signature, key, **told)
    return refusal.value.code


def test_what_the_server_signed_is_verified_by_its_public_key_alone(
    keys: ServerKeys, report: Path, tmp_path: Path
) -> None:
    key_id, public = keys.report_public_key
    beside = tmp_path / "report.json.sig"
    beside.write_text(keys.sign_report(CONTENT) + "\n")
    (tmp_path / "key.pem").write_text(public)

    told = verify_report(report, None, tmp_path / "key.pem")

    assert (told.key_id, told.size_bytes) == (key_id, len(CONTENT))
    # From sha256sum.
    assert told.sha256 == "fbf1069f6c2a464e2612e35bab7c3066d062e80e904a70620d5be54e367f7efe"
    assert verify_report(report, keys.sign_report(CONTENT), public, sha256=told.sha256) == told


def test_the_key_is_made_once_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    first = ServerKeys(tmp_path / "server.key")
    again = ServerKeys(tmp_path / "server.key")
    other = ServerKeys(tmp_path / "other.key")

    assert first.report_public_key == again.report_public_key != other.report_public_key
    assert (tmp_path / "server.key").stat().st_mode & 0o777 == 0o600


def test_an_altered_byte_is_found_out_wherever_it_is(keys: ServerKeys, report: Path) -> None:
    signature, key = keys.sign_report(CONTENT), keys.report_public_key[1]
    for place in range(len(CONTENT)):
        altered = bytearray(CONTENT)
        altered[place] ^= 1
        report.write_bytes(altered)
        assert refused(report, signature, key) == "report_altered"
    for content in (CONTENT + b"\n", CONTENT[:-1], b""):
        report.write_bytes(content)
        assert refused(report, signature, key) == "report_altered"


def test_another_key_a_missing_signature_and_another_digest_have_words_of_their_own(
    keys: ServerKeys, report: Path, tmp_path: Path
) -> None:
    signature, key = keys.sign_report(CONTENT), keys.report_public_key[1]
    other = Ed25519PrivateKey.generate()

    assert refused(report, signature, pem(other)) == "report_of_another_key"
    assert refused(report, None, key) == "signature_missing"
    assert refused(report, signature, "") == "public_key_missing"
    assert refused(report, signature, key, sha256="0" * 64) == "report_altered"
    # Somebody who signs in the name of the key, with another.
    forged = base64.b64encode(other.sign(CONTENT)).decode()
    assert refused(report, f"{signature.rpartition(':')[0]}:{forged}", key) == "report_altered"


@pytest.mark.parametrize(
    "signature", ["ed25519:abc:!!!", "ed25519:abc:AAAA", "ed25519::AAAA", "rsa:a:b\n", "\n"]
)
def test_a_signature_that_is_none_is_told(signature: str, keys: ServerKeys, report: Path) -> None:
    code = refused(report, signature, keys.report_public_key[1])
    assert code in ("signature_unreadable", "signature_missing")


def test_files_that_hold_no_signature_or_key_are_told(
    keys: ServerKeys, report: Path, tmp_path: Path
) -> None:
    signature, key = keys.sign_report(CONTENT), keys.report_public_key[1]
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "long").write_bytes(b"a" * 100_000)

    assert refused(report, tmp_path / "absent", key) == "signature_unreadable"
    assert refused(report, tmp_path / "binary", key) == "signature_unreadable"
    assert refused(report, tmp_path / "long", key) == "signature_unreadable"
    for public in (tmp_path / "absent", report, tmp_path / "binary", "-----BEGIN\n"):
        assert refused(report, signature, public) == "public_key_unreadable"
    assert refused(report, signature, pem(X25519PrivateKey.generate())) == "public_key_unreadable"
