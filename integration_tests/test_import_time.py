import subprocess
import sys

import pytest

HEAVY = ("torch", "gymnasium", "stable_baselines3", "fastapi", "sqlalchemy", "matplotlib", "typer")
BUDGET = 0.4


def python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("package", ["rlcore", "rlmesh", "rleaas", "rlmesh.cli.main"])
def test_importing_a_package_loads_nothing_heavy(package: str) -> None:
    loaded = python(f"import sys, {package}; print(*sys.modules)").split()

    assert package in loaded
    assert not set(HEAVY) & set(loaded)


def test_rlmesh_alone_loads_neither_grpc_nor_the_control_plane() -> None:
    loaded = python("import sys, rlmesh; print(*sys.modules)").split()

    assert not {"grpc", "rleaas", "httpx", "pydantic"} & set(loaded)


def test_rleaas_alone_does_not_load_the_data_plane() -> None:
    loaded = python("import sys, rleaas; rleaas.Client; print(*sys.modules)").split()

    assert not {"grpc", "rlmesh", "numpy"} & set(loaded)


@pytest.mark.parametrize("package", ["rlmesh", "rleaas"])
def test_importing_a_package_takes_less_than_its_budget(package: str) -> None:
    # Processor time, the best of five: what else the machine does is not the package's doing.
    code = f"import time; t = time.process_time(); import {package}; print(time.process_time() - t)"

    best = min(float(python(code)) for _ in range(5))

    assert best < BUDGET


def test_a_server_loads_only_what_a_server_of_one_environment_needs() -> None:
    loaded = python("import sys, rlmesh.server.env_server; print(*sys.modules)").split()

    rooms = {
        f"rlmesh.server.{room}" for room in ("isolation", "vector_stage", "lane_stage", "metrics")
    }
    assert not {*rooms, "rlcore.settings", "gymnasium", "wsgiref"} & set(loaded)
