"""`scripts/uv` on machines that have no uv."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

# A Python that belongs to the system's package manager refuses installs beside it (PEP 668).
REFUSES_USER_INSTALLS = f"""#!/bin/sh
case "$*" in "-m pip install --user"*) echo "externally-managed-environment" >&2; exit 1;; esac
exec {sys.executable} "$@"
"""
REFUSES_ALL = f"""#!/bin/sh
case "$*" in "-m pip"* | "-m venv"*) echo "No module named pip" >&2; exit 1;; esac
exec {sys.executable} "$@"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What a clone has of it, and a PATH and a home without uv."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "uv", tmp_path / "scripts" / "uv")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for tool in ("env", "bash", "dirname", "mktemp", "rm", "cat", "sh"):
        place = tmp_path / "bin" / tool
        place.parent.mkdir(exist_ok=True)
        found = shutil.which(tool)
        assert found is not None
        place.symlink_to(found)
    return tmp_path


def scripts_uv(checkout: Path, python: str) -> subprocess.CompletedProcess[str]:
    stub = checkout / "bin" / "python3"
    stub.write_text(python)
    stub.chmod(0o755)
    return subprocess.run(
        [checkout / "scripts" / "uv", "--version"],
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "PATH": str(checkout / "bin"), "HOME": str(checkout / "home")},
        check=False,
    )


def test_where_the_systems_python_refuses_uv_gets_a_private_folder(checkout: Path) -> None:
    done = scripts_uv(checkout, REFUSES_USER_INSTALLS)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("uv ")
    assert (checkout / ".uv" / "bin" / "uv").exists()


def test_where_nothing_can_be_installed_the_error_says_what_to_install(checkout: Path) -> None:
    done = scripts_uv(checkout, REFUSES_ALL)

    assert done.returncode == 1
    assert "No module named pip" in done.stderr
    assert "error: uv could not be installed by pip. Install uv, or pip or venv" in done.stderr
