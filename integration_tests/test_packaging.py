"""Each package alone, as a user gets it: built, installed into a place of its own, and used."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
UV = ROOT / "scripts" / "uv"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SERVE = """
import sys
import numpy
import rlmesh
from rlmesh.spaces import Box, Discrete

class Count:
    observation_space = Box(low=0.0, high=10.0, shape=(2,), dtype="float32")
    action_space = Discrete(3)

    def reset(self, *, seed=None, options=None):
        self.total = 0.0
        return [0.0, 0.0], {}

    def step(self, action):
        self.total += action
        return [self.total, 1.0], float(action), self.total >= 4, False, {}

    def close(self):
        pass

with rlmesh.EnvServer(Count()) as server, rlmesh.RemoteEnv(server.address) as env:
    env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step(2)
    print(numpy.asarray(observation).tolist())
    print(reward, terminated, truncated)
assert not {"gymnasium", "rleaas", "torch"} & set(sys.modules)
"""

LIST = """
import sys
import rleaas

assert "Client" in rleaas.__all__
try:
    rleaas.Client(base_url="http://127.0.0.1:1", retries=1).ping()
except rleaas.PlatformUnreachable as error:
    print(error)
assert "rlmesh" not in sys.modules
"""


@dataclass(frozen=True)
class Place:
    """A virtual environment of its own."""

    path: Path

    @property
    def python(self) -> Path:
        return self.path / "bin" / "python"

    def run(self, code: str) -> str:
        return completed(str(self.python), "-I", "-c", code)


def completed(*command: str, cwd: Path = ROOT) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=570, cwd=cwd, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The three wheels, built without the workspace's sources."""
    folder = tmp_path_factory.mktemp("wheels")
    for name in ("rlcore", "rlmesh", "rleaas"):
        completed(
            str(UV), "build", "--no-sources", "--wheel", "--package", name, "--out-dir", str(folder)
        )
    return {path.name.partition("-")[0]: str(path) for path in folder.glob("*.whl")}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    path = tmp_path / "venv"
    # Seeded with a pip: one test installs as people without uv do.
    completed(str(UV), "venv", "--quiet", "--seed", str(path), cwd=tmp_path)
    return Place(path)


def install(place: Place, *packages: str) -> None:
    completed(str(UV), "pip", "install", "--quiet", "--python", str(place.python), *packages)


def test_rlmesh_without_rleaas_serves_an_environment_and_drives_it(
    wheels: dict[str, str], place: Place
) -> None:
    install(place, wheels["rlcore"], wheels["rlmesh"])

    assert place.run(SERVE).splitlines() == ["[2.0, 1.0]", "2.0 False False"]


def test_rlmesh_without_rleaas_says_what_a_registered_name_needs(
    wheels: dict[str, str], place: Place
) -> None:
    install(place, wheels["rlcore"], wheels["rlmesh"])

    said = place.run(
        "import rlmesh, rlcore\n"
        "try: rlmesh.RemoteEnv('rleaas://CartPole')\n"
        "except rlcore.AddressError as error: print(error)"
    )

    assert 'pip install "rleaas[mesh]"' in said


def test_rleaas_without_rlmesh_is_a_client(wheels: dict[str, str], place: Place) -> None:
    install(place, wheels["rlcore"], wheels["rleaas"])

    assert "http://127.0.0.1:1" in place.run(LIST)


def test_pip_installs_the_three_folders(place: Place) -> None:
    folders = [str(ROOT / "packages" / name) for name in ("core", "rlmesh", "rleaas")]

    completed(str(place.python), "-m", "pip", "install", "--quiet", *folders)

    assert place.run(
        "import rlmesh, rleaas; print(rlmesh.EnvServer.__name__, rleaas.Client.__name__)"
    ) == ("EnvServer Client\n")


def test_pip_finds_a_solution_with_every_extra(place: Place) -> None:
    """Only resolved: what the extras bring is gigabytes."""
    folders = [str(ROOT / "packages" / name) for name in ("core", "rlmesh", "rleaas[all]")]

    said = completed(str(place.python), "-m", "pip", "install", "--dry-run", *folders)

    chosen = said.rpartition("Would install")[2].split()
    assert {"rlcore-2.0.0a1", "rlmesh-2.0.0a1", "rleaas-2.0.0a1"} <= set(chosen)
    assert any(name.startswith("torch-") for name in chosen)
