"""What the settings of TLS refuse, keep to themselves, and give to sockets."""

from __future__ import annotations

import os
import pickle
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
)
from rlcore import ConfigurationError
from rlmesh.transport import certificates
from rlmesh.transport.certificates import fingerprint_of, leaf_of, name_of, read_fingerprint
from rlmesh.transport.tls import ClientTls, ServerTls, client_tls, server_tls

Issue = Callable[..., Any]


def exchange(server: ServerTls, client: ClientTls) -> bytes:
    """Send five bytes through a pair of sockets with TLS on them."""
    ours, theirs = socket.socketpair()
    for one in (ours, theirs):
        one.settimeout(10)
    received: list[bytes] = []

    def serve() -> None:
        try:
            with server.ssl_context().wrap_socket(theirs, server_side=True) as wrapped:
                received.append(wrapped.recv(5))
                wrapped.sendall(b"hello")
        except OSError:
            theirs.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client.wrap(ours, "localhost") as wrapped:
            wrapped.sendall(b"hello")
            return wrapped.recv(5)
    finally:
        ours.close()
        thread.join(10)


def test_sockets_get_the_same_trust_as_grpc(issue: Issue) -> None:
    ca = issue(ca=True)
    leaf, mine = issue("localhost", by=ca), issue("me", by=ca)
    server = ServerTls.from_files(leaf.cert, leaf.key)
    assert exchange(server, ClientTls.from_files(ca=ca.cert)) == b"hello"
    with pytest.raises(ssl.SSLCertVerificationError):
        exchange(server, ClientTls.from_files(ca=issue(ca=True).cert))
    with pytest.raises(ssl.SSLCertVerificationError):
        exchange(server, ClientTls.from_files(ca=ca.cert, server_name="other"))
    mutual = ServerTls.from_files(leaf.cert, leaf.key, ca.cert)
    known = ClientTls.from_files(ca=ca.cert, cert=mine.cert, key=mine.key)
    assert exchange(mutual, known) == b"hello"
    with pytest.raises(OSError, match=r"(?i)certificate required|reset|eof"):
        exchange(mutual, ClientTls.from_files(ca=ca.cert))


def test_a_met_pin_trusts_that_certificate_only() -> None:
    server, other = ServerTls.auto(), ServerTls.auto()
    pinned = ClientTls(fingerprint=server.fingerprint)
    with pytest.raises(ConfigurationError, match="has not been fetched"):
        pinned.ssl_context()
    with pytest.raises(ConfigurationError, match="has not been fetched"):
        pinned.grpc_credentials()
    met = pinned.met(server.pair.certificate, "rlmesh")
    assert exchange(server, met) == b"hello"
    with pytest.raises(ssl.SSLCertVerificationError):
        exchange(other, met)


def test_the_key_is_neither_shown_nor_pickled_nor_left_on_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened: list[tuple[int, int]] = []
    real = os.open

    def watched(path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
        descriptor = real(path, flags, mode, **more)
        if str(path).endswith("pair.pem"):
            folder = Path(path).parent.stat().st_mode & 0o777
            opened.append((os.fstat(descriptor).st_mode & 0o777, folder))
        return descriptor

    monkeypatch.setattr(os, "open", watched)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    server = ServerTls.auto()
    server.ssl_context()
    secret = server.pair.key.reveal()
    assert opened == [(0o600, 0o700)] * 2
    assert list(tmp_path.iterdir()) == []
    middle = secret.splitlines()[1]
    assert middle not in repr(server)
    assert middle not in str(server)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(server)


def test_the_key_is_in_no_error(issue: Issue) -> None:
    one, other = issue("localhost"), issue("localhost")
    with pytest.raises(ConfigurationError) as caught:
        ServerTls.from_files(one.cert, other.key)
    told = "".join(traceback.format_exception(caught.value))
    assert "not the key of the certificate" in told
    assert other.key.read_text().splitlines()[1] not in told


def test_a_key_of_another_certificate_is_refused(issue: Issue) -> None:
    one, other = issue("localhost"), issue("localhost")
    with pytest.raises(ConfigurationError, match="not the key of the certificate"):
        ServerTls.from_files(one.cert, other.key)
    with pytest.raises(ConfigurationError, match="not the key of the certificate"):
        ClientTls.from_files(ca=one.cert, cert=one.cert, key=other.key)


def test_files_that_are_missing_or_hold_something_else_are_named(
    issue: Issue, tmp_path: Path
) -> None:
    one = issue("localhost")
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing")
    broken = tmp_path / "broken.pem"
    broken.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    with pytest.raises(ConfigurationError, match=r"cannot be read from '.*none': No such file"):
        ServerTls.from_files(tmp_path / "none", one.key)
    with pytest.raises(ConfigurationError, match=r"private key cannot be read from '.*none'"):
        ServerTls.from_files(one.cert, tmp_path / "none")
    with pytest.raises(ConfigurationError, match=r"no certificate in '.*empty\.pem'"):
        ServerTls.from_files(empty, one.key)
    with pytest.raises(ConfigurationError, match=r"no private key in '.*empty\.pem'"):
        ServerTls.from_files(one.cert, empty)
    with pytest.raises(ConfigurationError, match="cannot be used"):
        ServerTls.from_files(broken, one.key)
    with pytest.raises(ConfigurationError, match="CA cannot be read"):
        ServerTls.from_files(one.cert, one.key, broken)
    with pytest.raises(ConfigurationError, match="CA cannot be read"):
        ClientTls.from_files(ca=broken)


def test_an_encrypted_key_is_refused_without_asking_for_its_password(
    issue: Issue, tmp_path: Path
) -> None:
    one = issue("localhost")
    locked = tmp_path / "locked.key"
    locked.write_bytes(
        one.private.private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"password")
        )
    )
    with pytest.raises(ConfigurationError, match="is encrypted"):
        ServerTls.from_files(one.cert, locked)


def test_arguments_that_contradict_each_other_are_refused(issue: Issue) -> None:
    one = issue("localhost")
    with pytest.raises(ConfigurationError, match="both given"):
        ClientTls.from_files(ca=one.cert, fingerprint=one.fingerprint)
    with pytest.raises(ConfigurationError, match="without its certificate"):
        ClientTls.from_files(ca=one.cert, key=one.key)
    with pytest.raises(ConfigurationError, match="which server to trust"):
        ClientTls()


def test_a_server_takes_one_file_a_pair_or_a_triple(issue: Issue, tmp_path: Path) -> None:
    one = issue("localhost")
    both = tmp_path / "both.pem"
    both.write_bytes(one.key.read_bytes() + one.cert.read_bytes())
    for given in (both, str(both), (one.cert, one.key), [one.cert, one.key, one.cert]):
        served = server_tls(given, host="localhost")
        assert served is not None
        assert served.fingerprint == one.fingerprint
    assert server_tls(None, host="x") is None
    assert server_tls(False, host="x") is None
    wrongs: tuple[object, ...] = (True, 7, (one.cert,), b"auto")
    for wrong in wrongs:
        with pytest.raises(ConfigurationError, match="nothing to serve with"):
            server_tls(wrong, host="localhost")


def test_a_client_takes_what_it_can_trust(issue: Issue) -> None:
    one = issue("localhost")
    for given in (one.cert, str(one.cert)):
        trusted = client_tls(given)
        assert trusted is not None
        assert trusted.roots == one.cert.read_bytes()
    assert client_tls(False) is None
    for roots in (client_tls(True), client_tls("system")):
        assert roots is not None
        assert b"BEGIN CERTIFICATE" in (roots.roots or b"")
    with pytest.raises(ConfigurationError, match="is for servers"):
        client_tls("auto")
    for wrong in (7, (), ServerTls.auto()):
        with pytest.raises(ConfigurationError, match="nothing about whom to trust"):
            client_tls(wrong)


@pytest.mark.parametrize("text", ["sha256:", "sha256:12", "sha1:" + "0" * 64, "sha256:" + "g" * 64])
def test_what_is_no_fingerprint_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="not the fingerprint of a certificate"):
        read_fingerprint(text)


def test_a_fingerprint_is_what_openssl_prints(issue: Issue) -> None:
    one = issue("localhost")
    assert fingerprint_of(leaf_of(one.cert.read_bytes())) == one.fingerprint
    colons = ":".join(one.fingerprint[7:][at : at + 2] for at in range(0, 64, 2)).upper()
    assert read_fingerprint(f" SHA256:{colons}\n") == one.fingerprint


def test_the_name_of_a_certificate_is_one_that_it_is_good_for() -> None:
    assert name_of({"subjectAltName": (("email", "a@b"), ("DNS", "*.example.com"))}) == (
        "pinned.example.com"
    )
    assert name_of({"subjectAltName": (("IP Address", "127.0.0.1"),)}) == "127.0.0.1"
    assert name_of({"subject": ((("commonName", "robots"),),)}) == "robots"
    assert name_of({}) is None


def test_roots_are_found_in_a_folder_where_there_is_no_store(
    monkeypatch: pytest.MonkeyPatch, issue: Issue, tmp_path: Path
) -> None:
    one, other = issue(ca=True), issue(ca=True)
    folder = tmp_path / "certs"
    folder.mkdir()
    for index, issued in enumerate((one, other, one)):
        (folder / f"{index}.pem").write_bytes(issued.cert.read_bytes())
    (folder / "more").mkdir()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("SSL_CERT_DIR", str(folder))
    found = certificates.system_roots()
    assert found.count(b"BEGIN") == 2
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))
    with pytest.raises(ConfigurationError, match="no list of trusted certificates"):
        certificates.system_roots()


def test_without_cryptography_only_auto_is_missing(issue: Issue) -> None:
    one = issue("127.0.0.1")
    code = (
        "import sys\n"
        "sys.modules['cryptography'] = None\n"
        "import rlmesh\n"
        f"rlmesh.ServerTls.from_files({str(one.cert)!r}, {str(one.key)!r})\n"
        "try:\n"
        "    rlmesh.ServerTls.auto()\n"
        "except rlmesh.MissingDependencyError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert "rlmesh[tls]" in done.stdout
