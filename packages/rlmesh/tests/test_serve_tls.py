"""`rlmesh serve --tls`: a real process, its printed fingerprint, and the commands that pin it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rlcore import TlsError
from rlmesh.cli.main import main
from rlmesh.numpy import RemoteEnv
from rlmesh.serve import main as serve
from rlmesh.transport.tls import ClientTls

Issue = Callable[..., Any]
Start = Callable[..., tuple[subprocess.Popen[str], list[str]]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a server and return it with the words that it announced."""
    processes: list[subprocess.Popen[str]] = []

    def run(*arguments: str, **environ: str) -> tuple[subprocess.Popen[str], list[str]]:
        reading, writing = os.pipe()
        command = [sys.executable, "-m", "rlmesh.serve", "CartPole-v1", "--address", "127.0.0.1:0"]
        process = subprocess.Popen(
            [*command, *arguments, "--ready-fd", str(writing)],
            pass_fds=[writing],
            env={**os.environ, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        os.close(writing)
        with os.fdopen(reading) as ready:
            assert select.select([ready], [], [], 30)[0]
            return process, ready.readline().split()

    yield run
    for process in processes:
        process.kill()
        process.communicate()


def test_a_made_certificate_is_announced_printed_and_pinned(
    start: Start, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    process, (address, fingerprint) = start("--tls", "auto", RLMESH_TOKEN="open sesame")
    with RemoteEnv(address, tls=fingerprint, token="open sesame") as env:
        env.reset(seed=1)
    monkeypatch.setenv("RLMESH_TOKEN", "open sesame")
    assert main(["ping", address, "--tls", fingerprint]) == 0
    assert "CartPole-v1" in capsys.readouterr().out
    assert main(["ping", address]) == 1
    assert "speaks TLS, and was dialled without" in capsys.readouterr().err
    monkeypatch.setenv("RLMESH_TLS", fingerprint)
    assert main(["inspect", address, "--json"]) == 0
    capsys.readouterr()
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=20)
    assert out.splitlines() == [
        f"serving CartPole-v1 at {address}",
        f"tls fingerprint {fingerprint}",
    ]
    assert err == ""


def test_files_and_a_client_ca_are_served(start: Start, issue: Issue) -> None:
    ca = issue(ca=True)
    leaf, mine = issue("127.0.0.1", by=ca), issue("me", by=ca)
    files = ("--tls", str(leaf.cert), "--tls-key", str(leaf.key), "--tls-client-ca", str(ca.cert))
    _, (address, fingerprint) = start(*files)
    assert fingerprint == leaf.fingerprint
    with pytest.raises(TlsError) as caught:
        RemoteEnv(address, tls=ca.cert)
    assert caught.value.code == "client_certificate"
    known = ClientTls.from_files(ca=ca.cert, cert=mine.cert, key=mine.key)
    with RemoteEnv(address, tls=known) as env:
        env.reset(seed=1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--tls", "/no/such.pem"], "cannot be read from '/no/such.pem'"),
        (["--tls", "auto", "--address", "unix:///tmp/x.sock"], "takes no TLS"),
        (["--address", "0.0.0.0:0"], "neither a token nor TLS"),
    ],
)
def test_what_cannot_be_served_is_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert serve(["CartPole-v1", *arguments]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert words in err
