"""The published rleaas 1.1.0 against our server: all of its callables, by what they bring about.

The published package is installed into an environment of its own, and only run, never read. The
table is printed by `-s`, and in the terminal's summary; RLEAAS_INTEROP_TABLE names a file that it
is written to as well.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SCRIPT = Path(__file__).with_name("interop_rleaas_script.py")
KEY = "rleaas_sk_interop"


@contextmanager
def running(data: Path) -> Generator[str]:
    """`rleaas serve`, for callers with the key; it may ask this machine, where neighbours are."""
    command = ["-m", "rleaas.cli.main", "serve", "--port", "0", "--data", str(data)]
    server = subprocess.Popen(
        [sys.executable, *command, "--allow-host", "127.0.0.1"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "RLEAAS_SERVER_API_KEY": KEY},
    )
    assert server.stdout is not None
    with server:
        yield server.stdout.readline().split()[-1]
        server.terminate()
        server.stdout.read()


@pytest.fixture(scope="module")
def table(helpers: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the script under the published package says."""
    hub: ModuleType = import_module("interop_hub")
    python: Path = hub.published_rleaas()
    with running(tmp_path_factory.mktemp("server")) as url:
        done = subprocess.run(
            [python, SCRIPT, url, KEY, tmp_path_factory.mktemp("script")],
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.fixture(scope="module")
def published(helpers: None) -> list[str]:
    """All callables, as our list has them."""
    surface = import_module("interop_rleaas_surface")
    return [f"{owner}.{name}" for owner, names in surface.callables().items() for name in names]


def test_no_callable_of_the_published_package_is_forgotten(
    table: dict[str, Any], published: list[str]
) -> None:
    assert table["version"] == "1.1.0"
    assert sorted(table["callables"]) == sorted(published)
    assert sorted(row[0] for row in table["rows"]) == sorted(published)
    assert len(set(published)) == 142


def test_every_published_callable_has_the_effect_that_its_documentation_promises(
    table: dict[str, Any], record_property: Any
) -> None:
    record_property("rleaas interop", table["rows"])
    assert [row for row in table["rows"] if row[2].startswith("WRONG")] == []


def test_what_is_not_as_promised_says_why(table: dict[str, Any]) -> None:
    """What no server can cure has its defect's number; what is refused says by what."""
    other = [row for row in table["rows"] if not row[2].startswith(("as promised", "WRONG"))]
    incurable = [row for row in table["rows"] if "cannot be cured" in row[2]]

    assert [name for name, _, _ in other] == [
        "DeploymentsClient.list_azure_clusters",
        "DeploymentsClient.delete_azure_cluster",
    ]
    assert len(incurable) == 10
