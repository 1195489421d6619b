import io
from pathlib import Path

import httpx
import pytest
from rleaas.cli.main import main
from rleaas.server.local import LocalServer


def test_a_deletion_that_nobody_can_confirm_is_a_usage_error_that_names_the_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    server = LocalServer(tmp_path)
    server.start()
    try:
        body = {"name": "Kept", "source": "custom"}
        httpx.post(f"{server.url}/api/custom-environments", json=body, trust_env=False)

        exit_code = main(["env", "delete", "Kept", "--base-url", server.url])

        kept = httpx.get(f"{server.url}/api/environments/Kept", trust_env=False)
    finally:
        server.stop()
    assert exit_code == 2
    assert "--yes" in capsys.readouterr().err
    assert kept.status_code == 200
