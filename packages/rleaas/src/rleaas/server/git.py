"""Asking remote repositories: `git`, bounded, without prompts, files or protocols but four."""

import base64
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rlcore import InvalidRequestError, MissingDependencyError, Secret
from rlcore.environ import snapshot

from rleaas.server.outbound import Destination, Outbound

SCHEMES: Final = frozenset({"https", "http", "ssh", "git"})
REACH_SECONDS: Final = 20.0
FETCH_SECONDS: Final = 60.0
_LARGEST_FILE_KIB: Final = 512 * 1024
_LONGEST_TEXT: Final = 64 * 1024
_MOST_FILES: Final = 5000
_SHORTHAND = re.compile(r"(?P<who>[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+):(?P<path>[^/].*)")
_BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+@=-]{0,254}")
_NO_PASSWORDS = re.compile(r"//[^/?#\s]+@")


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository somewhere, and how to be let in.

    Attributes:
        url: `https://`, `http://`, `ssh://` or `git://`, or `git@host:path`.
        branch: the branch to look at.
        username: for a token that wants one.
        token: never shown, and never among a process's arguments.
    """

    url: str
    branch: str = "main"
    username: str = ""
    token: Secret | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a branch holds: its commit, its files with their sizes, and texts of some."""

    commit: str
    files: tuple[tuple[str, int], ...]
    truncated: bool
    readme: str
    pyproject: str


class Git:
    """Runs `git` against remotes.

    Args:
        outbound: which hosts may be reached.
    """

    def __init__(self, outbound: Outbound) -> None:
        self._outbound = outbound

    def head(self, remote: Remote) -> str:
        """Return the commit that the branch is at.

        Raises:
            InvalidRequestError: the URL is not allowed, nothing answers, it refuses, or there is no
                such branch.
        """
        call = self._permitted(remote)
        reference = f"refs/heads/{remote.branch}"
        said = call.run(["ls-remote", "--", call.url, reference], REACH_SECONDS)
        commit, _, _ = said.partition("\t")
        if not commit.strip():
            raise _refused(remote, f"it has no branch {remote.branch!r}", "branch_not_found")
        return commit.strip()

    def snapshot(self, remote: Remote) -> Snapshot:
        """Fetch the newest commit of the branch and say what is in it; nothing is checked out.

        Raises:
            InvalidRequestError: as for `head`, or it is too large to be fetched in time.
        """
        call = self._permitted(remote)
        with tempfile.TemporaryDirectory(prefix="rleaas-repository-") as directory:
            place = Path(directory) / "bare"
            clone = ["clone", "--bare", "--depth=1", "--single-branch", "--no-tags", "--quiet"]
            clone += ["--branch", remote.branch, "--", call.url, str(place)]
            call.run(clone, FETCH_SECONDS)
            inside = [f"--git-dir={place}"]
            commit = call.run([*inside, "rev-parse", "HEAD"], REACH_SECONDS).strip()
            tree = call.run([*inside, "ls-tree", "-r", "-l", "-z", "HEAD"], REACH_SECONDS)
            files = [_entry(line) for line in tree.split("\0") if line]
            texts = {
                name: call.run([*inside, "show", f"HEAD:{name}"], REACH_SECONDS)
                for name, size in files
                if name in ("README.md", "pyproject.toml") and size <= _LONGEST_TEXT
            }
        return Snapshot(
            commit,
            tuple(files[:_MOST_FILES]),
            len(files) > _MOST_FILES,
            texts.get("README.md", ""),
            texts.get("pyproject.toml", ""),
        )

    def _permitted(self, remote: Remote) -> "_Call":
        if not _BRANCH.fullmatch(remote.branch) or ".." in remote.branch:
            raise _refused(remote, f"{remote.branch!r} cannot be a branch", "invalid_branch")
        shorthand = _SHORTHAND.fullmatch(remote.url)
        url = f"ssh://{shorthand['who']}/{shorthand['path']}" if shorthand else remote.url
        if not url.isprintable() or any(mark.isspace() for mark in url):
            raise _refused(remote, "its URL has blanks in it", "invalid_url")
        return _Call(remote, url, self._outbound.permit(url, SCHEMES))


@dataclass(frozen=True, slots=True)
class _Call:
    """Commands against one remote, at the addresses that were looked at."""

    remote: Remote
    url: str
    destination: Destination

    def run(self, arguments: list[str], seconds: float) -> str:
        environment = _environment(self.remote, self.destination)
        return _run(arguments, self.remote, environment, seconds)


def without_password(url: str) -> str:
    """The URL without what somebody wrote into it to be let in."""
    return _NO_PASSWORDS.sub("//", url)


def _entry(line: str) -> tuple[str, int]:
    facts, _, name = line.partition("\t")
    size = facts.split()[-1]
    return name, int(size) if size.isdecimal() else 0  # a submodule has none


def _run(
    arguments: list[str], remote: Remote, environment: Mapping[str, str], seconds: float
) -> str:
    # No file grows beyond the limit, whatever a remote sends.
    command = ["sh", "-c", f'ulimit -f {_LARGEST_FILE_KIB * 2}; exec git "$@"', "git", *arguments]
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd=tempfile.gettempdir(),
    )
    try:
        output, complaint = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise _refused(remote, f"it did not answer within {seconds:g} s", "no_answer") from error
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)  # its helpers too
            process.communicate()
    if process.returncode == 127:
        raise MissingDependencyError("`git` is not installed", hint="Install git on the server")
    if process.returncode != 0:
        lines = [line.strip() for line in complaint.decode("utf-8", "replace").splitlines()]
        said = next((line for line in lines if line.startswith("fatal:")), None)
        why = said or (lines[-1] if lines else f"git ended with {process.returncode}")
        raise _refused(remote, _censored(why, remote), "repository_not_reachable")
    return output.decode("utf-8", "replace")


def _environment(remote: Remote, destination: Destination) -> Mapping[str, str]:
    surroundings = snapshot()
    address = destination.addresses[0]
    settings = [
        ("credential.helper", ""),
        ("core.askPass", "true"),
        ("http.followRedirects", "false"),  # elsewhere was not looked at
        ("http.curloptResolve", f"{destination.host}:{destination.port}:{address}"),
        ("protocol.allow", "never"),
        *((f"protocol.{scheme}.allow", "always") for scheme in sorted(SCHEMES)),
    ]
    if remote.token is not None:
        pair = f"{remote.username or 'x-access-token'}:{remote.token.reveal()}"
        encoded = base64.b64encode(pair.encode()).decode()
        settings.append(("http.extraHeader", f"Authorization: Basic {encoded}"))
    environment = {
        "PATH": surroundings.get("PATH", "/usr/bin:/bin"),
        "HOME": "/nonexistent",  # neither keys nor settings of whoever runs the server
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "SSH_ASKPASS": "true",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ALLOW_PROTOCOL": ":".join(sorted(SCHEMES)),
        "GIT_SSH_COMMAND": (
            f"ssh -F none -o BatchMode=yes -o ConnectTimeout=10 -o HostName={address}"
        ),
        "GIT_CONFIG_COUNT": str(len(settings)),
    }
    for number, (name, value) in enumerate(settings):
        environment[f"GIT_CONFIG_KEY_{number}"] = name
        environment[f"GIT_CONFIG_VALUE_{number}"] = value
    return environment


def _censored(text: str, remote: Remote) -> str:
    if remote.token is not None:
        text = text.replace(remote.token.reveal(), "…")
    return without_password(text.removeprefix("fatal: "))


def _refused(remote: Remote, why: str, code: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"repository {without_password(remote.url)[:200]!r}: {why}", status_code=422, code=code
    )
