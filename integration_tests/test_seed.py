"""The README that the product was asked for, run as it is written."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from rleaas.pytest_plugin import Platform

TEXT = (Path(__file__).parent / "seed" / "README.txt").read_text(encoding="utf-8")
HEADINGS = (
    "API Key",
    "Local development (no key required)",
    "Sub-clients",
    "Example",
    "Training + Simulation configuration",
    "config.json training schema",
    "Examples",
    "Async support",
    "License",
)


def section(heading: str) -> str:
    """What is written below a heading."""
    lines = TEXT.splitlines()
    begin = lines.index(heading) + 1
    ends = [lines.index(one) for one in HEADINGS if lines.index(one) > begin]
    return "\n".join(lines[begin : min(ends, default=len(lines))])


def code(heading: str, begins: str) -> str:
    """The Python of a section, from the line that begins with this on."""
    text = section(heading)
    found = textwrap.dedent(text[text.index(begins) :])
    # Prose may follow: the longest beginning that is Python is the block.
    lines = found.splitlines()
    for count in range(len(lines), 0, -1):
        block = "\n".join(lines[:count])
        try:
            ast.parse(block)
        except SyntaxError:
            continue
        return block
    raise AssertionError(f"no Python below {heading!r}")


@pytest.fixture
def platform(rleaas_server: Platform, monkeypatch: pytest.MonkeyPatch) -> Platform:
    """A server where the seed's code looks for one, and a key in the environment."""
    for name, value in rleaas_server.environ.items():
        monkeypatch.setenv(name, value)
    return rleaas_server


def run(block: str, platform: Platform) -> dict[str, Any]:
    """Run a block of the seed; the one address that is written in it is the server's."""
    names: dict[str, Any] = {}
    exec(compile(block.replace("http://localhost:8000", platform.url), "seed", "exec"), names)
    return names


def test_a_key_is_read_from_the_environment_or_given(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = re.search(r"export RLEAAS_API_KEY=\"(\S+)\"", section("API Key"))
    assert told is not None
    monkeypatch.setenv("RLEAAS_API_KEY", told[1])

    client = run(code("API Key", "import rleaas"), platform)["client"]

    assert client.base_url == platform.url
    client.close()


def test_a_local_server_needs_no_key_and_says_who_it_is(
    platform: Platform, capsys: pytest.CaptureFixture[str]
) -> None:
    run(code("Local development (no key required)", "import rleaas"), platform)["client"].close()

    said = capsys.readouterr().out
    promised = re.search(r"# \{'message': ('.+?')", section("Local development (no key required)"))
    assert promised is not None
    assert f"message={promised[1]}" in said
    assert "version='" in said


def test_the_client_has_every_sub_client_of_the_table(platform: Platform) -> None:
    import rleaas

    named = re.findall(r"^client\.(\w+)", section("Sub-clients"), re.M)
    assert len(named) == 10
    with rleaas.Client() as client:
        assert [name for name in named if not hasattr(client, name)] == []


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_example_trains_an_agent_that_runs_the_aml_check_and_scores_it(
    platform: Platform, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def drawn(_: int) -> int:
        return 7

    # It names no seed, so the platform draws one: the same one each time, as a check should be.
    monkeypatch.setattr("rleaas.server.training_requests.secrets.randbelow", drawn)
    names = run(code("Example", "import rleaas"), platform)

    report = names["report"]
    assert float(capsys.readouterr().out.splitlines()[-1]) == report["overall_score"]
    assert report["scored"] == report["asked"] > 0
    assert report["overall_score"] >= 0.95
    breakdown = report["verifier_breakdown"][names["rule_v"].id]
    assert breakdown["pass_rate"] >= 0.95
    assert names["job"].algorithm == "GRPO"
    assert names["env"].vertical == "FinSim"
    names["client"].close()


def test_the_configuration_is_valid_and_its_environment_is_all_that_is_missing(
    platform: Platform, tmp_path: Path
) -> None:
    text = section("config.json training schema")
    config, _ = json.JSONDecoder().raw_decode(text[text.index('{\n  "training"') :])
    assert [entry["training"] for entry in config["training"]] == [1, 2]
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    rewards = tmp_path / "rewards"
    rewards.mkdir()
    (rewards / "finsim_reward.py").write_text(
        "def reward(observation, action, reward, info):\n    return reward\n", encoding="utf-8"
    )

    def cli(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "rleaas.training_cli", *words],
            cwd=tmp_path,
            env={**os.environ, **platform.environ},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    refused = cli("start", "--all")
    assert refused.returncode != 0
    assert "Demo-FinSim-Env-aks-Demo" in refused.stderr


@pytest.fixture
def examples() -> list[tuple[str, str]]:
    """The table of examples: file, and what it shows."""
    return re.findall(r"^(examples/\w+\.py)\t(.+)$", section("Examples"), re.M)


def test_every_example_of_the_table_is_there(examples: list[tuple[str, str]]) -> None:
    root = Path(__file__).parents[1]
    assert len(examples) == 5
    assert [name for name, _ in examples if not (root / name).is_file()] == []


def test_the_asynchronous_client_does_the_same(platform: Platform) -> None:
    block = code("Async support", "async with")
    whole = "import rleaas\nasync def main():\n" + textwrap.indent(block, "    ")
    names = run(whole + "\n    return status", platform)

    assert asyncio.run(names["main"]())["message"] == "RL Environment & Agent API"
