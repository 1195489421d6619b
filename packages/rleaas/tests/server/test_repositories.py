"""Repositories: really asked, within bounds, and their tokens never given back."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from rlcore import InvalidRequestError, Secret, ServerFailure
from rleaas.server.git import Git, Remote
from rleaas.server.keys import ServerKeys
from rleaas.server.local import LocalServer
from rleaas.server.outbound import Outbound, is_public
from rleaas.server.settings import ServerSettings
from rleaas.server.state import ServerState
from rleaas.server.store.tables import RepositoryRow
from sqlalchemy import select

from .conftest import FakeMesh, Running, Start

TOKEN = "ghp_very-secret"


@dataclass
class GitHost:
    """A repository behind HTTP, which may want a token."""

    url: str
    commit: str
    wants: str | None = None
    asked: list[str] = field(default_factory=list[str])


def run(*command: str, cwd: Path) -> str:
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }
    done = subprocess.run(command, cwd=cwd, env=environment, check=True, capture_output=True)
    return done.stdout.decode().strip()


def answer(request: BaseHTTPRequestHandler, root: Path, host: GitHost) -> None:
    host.asked.append(request.path)
    given = request.headers.get("Authorization", "")
    if host.wants is not None and given != host.wants:
        request.send_response(401)
        request.send_header("WWW-Authenticate", "Basic")
        request.send_header("Content-Length", "0")
        request.end_headers()
        return
    path, _, query = request.path.partition("?")
    body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
    environment = {
        **os.environ,
        "GIT_PROJECT_ROOT": str(root),
        "GIT_HTTP_EXPORT_ALL": "1",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "REQUEST_METHOD": request.command,
        "CONTENT_TYPE": request.headers.get("Content-Type", ""),
        "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
        "REMOTE_ADDR": "127.0.0.1",
    }
    said = subprocess.run(
        ["git", "http-backend"], env=environment, input=body, check=True, capture_output=True
    ).stdout
    head, _, content = said.partition(b"\r\n\r\n")
    request.send_response(404 if b"Status: 404" in head else 200)
    for line in head.decode().split("\r\n"):
        name, _, value = line.partition(": ")
        if name != "Status":
            request.send_header(name, value)
    request.send_header("Content-Length", str(len(content)))
    request.end_headers()
    request.wfile.write(content)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[GitHost]:
    work, root = tmp_path / "work", tmp_path / "served"
    work.mkdir()
    run("git", "init", "-q", "-b", "main", cwd=work)
    (work / "README.md").write_text("# An environment\n")
    (work / "env.py").write_text("class Env: ...\n")
    run("git", "add", ".", cwd=work)
    run("git", "commit", "-q", "-m", "one", cwd=work)
    run("git", "clone", "-q", "--bare", str(work), str(root / "env.git"), cwd=tmp_path)
    host = GitHost("", run("git", "rev-parse", "HEAD", cwd=work))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self, root, host)

        def do_POST(self) -> None:
            answer(self, root, host)

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    host.url = f"http://127.0.0.1:{server.server_port}/env.git"
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    yield host
    server.shutdown()
    serving.join()
    server.server_close()


@pytest.fixture
def allowing(mesh: FakeMesh, tmp_path: Path) -> Iterator[Running]:
    """A server whose operator allows requests to this machine."""
    import httpx

    def make_state(settings: ServerSettings) -> ServerState:
        allowed = ServerSettings(data_dir=settings.data_dir, allowed_hosts=frozenset({"127.0.0.1"}))
        return ServerState(allowed, launcher=mesh, inspect=mesh.inspect)

    with (
        LocalServer(tmp_path / "data", make_state=make_state) as server,
        httpx.Client(base_url=server.url, timeout=60, trust_env=False) as http,
    ):
        yield Running(server, http, mesh)


def git() -> Git:
    return Git(Outbound({"127.0.0.1"}))


def refusal(remote: Remote, asking: Git | None = None) -> InvalidRequestError:
    with pytest.raises(InvalidRequestError) as caught:
        (asking or git()).head(remote)
    return caught.value


def test_a_branch_that_exists_is_reported_with_its_commit(allowing: Running, host: GitHost) -> None:
    reply = allowing.ok(allowing.http.post("/api/repo/validate", json={"repoUrl": host.url}))

    assert (reply["ok"], reply["commit"]) == (True, host.commit)


def test_a_branch_that_does_not_exist_is_not_ok(allowing: Running, host: GitHost) -> None:
    body = {"repoUrl": host.url, "branch": "nope"}
    reply = allowing.ok(allowing.http.post("/api/repo/validate", json=body))

    assert reply["ok"] is False
    assert reply["code"] == "branch_not_found"


def test_a_private_repository_is_reached_with_its_token_only(
    allowing: Running, host: GitHost
) -> None:
    host.wants = "Basic " + base64.b64encode(f"ada:{TOKEN}".encode()).decode()
    body = {"repoUrl": host.url, "authType": "basic", "username": "ada", "token": TOKEN}

    assert allowing.ok(allowing.http.post("/api/repo/validate", json=body))["ok"] is True
    wrong = allowing.ok(
        allowing.http.post("/api/repo/validate", json={**body, "token": "wrong-token"})
    )
    assert wrong["ok"] is False
    assert "wrong-token" not in str(wrong)


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc",
        "/etc",
        "ext::sh -c touch%20x",
        "--upload-pack=touch x",
        "ftp://example.org/x",
        "http://",
        "https://example.org/a b",
    ],
)
def test_files_and_other_protocols_are_refused_before_anything_runs(url: str) -> None:
    assert refusal(Remote(url)).code == "invalid_url"


@pytest.mark.parametrize("branch", ["--exec=x", "a b", "a..b", "", "x\ny"])
def test_a_branch_that_could_be_an_option_is_refused(branch: str) -> None:
    assert refusal(Remote("https://example.org/x", branch)).code == "invalid_branch"


def test_an_address_in_the_servers_network_is_refused_unless_the_operator_allows_it(
    host: GitHost,
) -> None:
    error = refusal(Remote(host.url), Git(Outbound()))

    assert error.code == "address_not_public"
    assert "--allow-host" in (error.hint or "")
    assert host.asked == []


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("169.254.169.254", False),
        ("::1", False),
        ("::ffff:127.0.0.1", False),
        ("fe80::1%eth0", False),
        ("224.0.0.1", False),
        ("8.8.8.8", True),
        ("2001:4860:4860::8888", True),
    ],
)
def test_only_addresses_of_the_internet_are_public(address: str, public: bool) -> None:
    assert is_public(address) is public


# defect: S-3
def test_a_token_is_stored_encrypted_and_never_returned(start: Start) -> None:
    platform = start()
    platform.register("E", source="custom")
    config = {"repoUrl": "https://me:pw@example.org/x.git", "authType": "pat", "token": TOKEN}
    saved = platform.http.put("/api/environments/E/repo", json=config)
    loaded = platform.http.get("/api/environments/E/repo")

    assert (platform.ok(saved)["saved"], platform.ok(loaded)["hasToken"]) == (True, True)
    assert platform.ok(loaded)["repoUrl"] == "https://example.org/x.git"
    for text in (saved.text, loaded.text, platform.http.get("/api/environments/E").text):
        assert TOKEN not in text
    with platform.server.state.database.read() as session:
        row = session.scalars(select(RepositoryRow)).one()
    assert row.encrypted_token is not None
    assert TOKEN not in row.encrypted_token
    keys = platform.server.state.keys
    assert keys.unseal("repositories", row.encrypted_token).reveal() == TOKEN


def test_a_token_does_not_go_to_another_repository(platform: Running) -> None:
    platform.register("E", source="custom")
    path = "/api/environments/E/repo"
    config = {"repoUrl": "https://example.org/x", "authType": "pat", "token": TOKEN}
    platform.ok(platform.http.put(path, json=config))
    same = platform.http.put(path, json={**config, "token": "", "branch": "dev"})
    other = platform.http.put(path, json={**config, "token": "", "repoUrl": "https://evil.org/x"})

    assert platform.ok(same)["hasToken"] is True
    assert platform.ok(other)["hasToken"] is False


def test_the_repository_of_a_registration_is_kept_without_its_token_in_the_record(
    platform: Running,
) -> None:
    repo = {"repoUrl": "https://example.org/x", "authType": "pat", "token": TOKEN}
    shown = platform.http.post(
        "/api/custom-environments", json={"name": "E", "source": "custom", "repo": repo}
    )

    assert TOKEN not in shown.text
    assert platform.ok(platform.http.get("/api/environments/E/repo"))["hasToken"] is True


def test_an_environment_without_a_repository_says_so(platform: Running) -> None:
    platform.register("E", source="custom")
    reply = platform.http.get("/api/environments/E/repo")

    assert (reply.status_code, reply.json()["kind"]) == (404, "repository")


def test_the_saved_repository_is_checked_with_its_token_and_the_check_is_remembered(
    allowing: Running, host: GitHost
) -> None:
    host.wants = "Basic " + base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
    allowing.register("E", source="custom")
    config = {"repoUrl": host.url, "authType": "pat", "token": TOKEN}
    allowing.ok(allowing.http.put("/api/environments/E/repo", json=config))
    checked = allowing.ok(allowing.http.post("/api/environments/E/repo/validate"))
    checks = allowing.ok(allowing.http.get("/api/environments/E/repo"))["checks"]

    assert (checked["ok"], checked["commit"]) == (True, host.commit)
    assert isinstance(checks, list)
    assert checks[0]["commit"] == host.commit


def test_analysing_looks_into_the_repository(allowing: Running, host: GitHost) -> None:
    allowing.register("E", source="custom", vertical="FinSim")
    bare = allowing.ok(allowing.http.get("/api/environment/E/analyze"))
    allowing.ok(allowing.http.put("/api/environments/E/repo", json={"repoUrl": host.url}))
    found = allowing.ok(allowing.http.get("/api/environment/E/analyze"))

    assert (bare["files"], bare["readme_raw"], bare["commit"]) == ([], "", None)
    assert found["readme_raw"] == "# An environment\n"
    assert found["commit"] == host.commit
    assert found["files"] == [{"path": "README.md", "size": 17}, {"path": "env.py", "size": 15}]


def test_what_another_server_sealed_cannot_be_read(tmp_path: Path) -> None:
    sealed = ServerKeys(tmp_path / "one").seal("repositories", Secret("x"))

    with pytest.raises(ServerFailure) as caught:
        ServerKeys(tmp_path / "two").unseal("repositories", sealed)
    assert caught.value.code == "secret_unreadable"
    with pytest.raises(ServerFailure):
        ServerKeys(tmp_path / "one").unseal("webhooks", sealed)
