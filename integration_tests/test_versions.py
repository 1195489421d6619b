import re
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SIBLINGS = ("rlcore", "rlmesh", "rleaas")
PROJECTS = sorted(
    [*ROOT.glob("packages/*/pyproject.toml"), *ROOT.glob("*/pyproject.toml")],
    key=lambda path: path.parent.name,
)


def project(path: Path) -> dict[str, Any]:  # Any: TOML has no schema here
    table: dict[str, Any] = tomllib.loads(path.read_text())["project"]
    return table


def requirements(path: Path) -> list[str]:
    table = project(path)
    extras: dict[str, list[str]] = table.get("optional-dependencies", {})
    return [*table["dependencies"], *(line for lines in extras.values() for line in lines)]


def test_all_members_have_one_version() -> None:
    versions = {path.parent.name: project(path)["version"] for path in PROJECTS}

    assert set(versions) >= {"core", "rlmesh", "rleaas"}
    assert len(set(versions.values())) == 1, versions


@pytest.mark.parametrize("name", ["rlmesh", "rleaas"])
def test_a_package_pins_its_siblings_to_its_own_version(name: str) -> None:
    path = ROOT / "packages" / name / "pyproject.toml"
    version = project(path)["version"]
    on_siblings = [
        line
        for line in requirements(path)
        if (match := re.match(r"[a-z]+", line)) and match[0] in SIBLINGS and match[0] != name
    ]

    assert any(line.startswith("rlcore") for line in on_siblings)
    assert all(line.endswith(f"=={version}") for line in on_siblings), on_siblings


@pytest.mark.parametrize("name", SIBLINGS)
def test_what_is_installed_has_the_version_of_the_source(name: str) -> None:
    folder = "core" if name == "rlcore" else name

    assert (
        metadata.version(name) == project(ROOT / "packages" / folder / "pyproject.toml")["version"]
    )


@pytest.mark.parametrize("folder", ["core", "rlmesh", "rleaas"])
def test_every_package_ships_the_same_licence_and_a_readme(folder: str) -> None:
    package = ROOT / "packages" / folder

    assert (package / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    assert project(package / "pyproject.toml")["readme"] == "README.md"
    assert (package / "README.md").read_text().startswith(f"# rl{folder.removeprefix('rl')}\n")
