"""`scripts/browser` on machines of several kinds, each a folder of commands that stand in."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "browser"
BASH = shutil.which("bash")
APT = """
case "$*" in
*install*) printf '#!/bin/sh\\n' >"$HERE/chromium"; chmod +x "$HERE/chromium" ;;
esac
echo "apt-get $*" >>"$HERE/log"
"""


class Machine:
    """A PATH of its own: a few tools of this machine, and commands that a test writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("bash", "cat", "chmod", "env", "mktemp", "rm"):
            found = shutil.which(name)
            assert found is not None
            (folder / name).symlink_to(found)

    def has(self, name: str, body: str = "") -> None:
        path = self.folder / name
        path.write_text(f"#!{BASH}\nset -e\n{body}\n", encoding="utf-8")
        path.chmod(0o755)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        assert BASH is not None
        return subprocess.run(
            [BASH, SCRIPT, *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": str(self.folder), "HERE": str(self.folder)},
        )

    @property
    def installed(self) -> list[str]:
        log = self.folder / "log"
        return log.read_text(encoding="utf-8").splitlines() if log.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def user(number: int) -> str:
    return f"echo {number}"


@pytest.mark.parametrize("name", ["chromium", "chromium-browser", "google-chrome"])
def test_a_browser_that_is_there_is_named(machine: Machine, name: str) -> None:
    machine.has(name)
    done = machine.run()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{machine.folder / name}\n"


def test_root_gets_debians(machine: Machine) -> None:
    machine.has("id", user(0))
    machine.has("apt-get", APT)
    done = machine.run()
    assert (done.returncode, done.stderr) == (0, "installing chromium\n")
    assert done.stdout == f"{machine.folder / 'chromium'}\n"
    assert machine.installed == [
        "apt-get update",
        "apt-get install -y --no-install-recommends chromium",
    ]


def test_a_user_gets_it_by_sudo_without_being_asked_for_a_password(machine: Machine) -> None:
    machine.has("id", user(1000))
    machine.has("apt-get", APT)
    machine.has("true")
    machine.has("sudo", '[ "$1" = -n ]; shift; exec "$@"')
    assert machine.run().returncode == 0
    assert len(machine.installed) == 2


@pytest.mark.parametrize("sudo", ["exit 1", None])
def test_a_user_who_may_not_install_is_told_what_to_do(machine: Machine, sudo: str | None) -> None:
    machine.has("id", user(1000))
    machine.has("apt-get", APT)
    if sudo is not None:
        machine.has("sudo", sudo)
    done = machine.run()
    assert done.returncode == 1
    assert "Installing it takes root, or sudo without a password." in done.stderr
    assert "sudo apt-get install chromium" in done.stderr
    assert machine.installed == []


def test_without_apt_get_it_is_told_what_to_do(machine: Machine) -> None:
    machine.has("id", user(0))
    done = machine.run()
    assert done.returncode == 1
    assert "There is no apt-get to install it with." in done.stderr


def test_an_installation_that_fails_shows_why(machine: Machine) -> None:
    machine.has("id", user(0))
    machine.has("apt-get", "echo 'E: the disk is full' >&2; exit 100")
    done = machine.run()
    assert done.returncode == 1
    assert "E: the disk is full\n" in done.stderr
    assert "apt-get could not install it." in done.stderr


def test_looking_only_installs_nothing(machine: Machine) -> None:
    machine.has("id", user(0))
    machine.has("apt-get", APT)
    done = machine.run("--find")
    assert done.returncode == 1
    assert "Run scripts/browser." in done.stderr
    assert machine.installed == []
