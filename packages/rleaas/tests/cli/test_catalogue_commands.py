"""What environments consist of, from the command line: each noun from its birth to its end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from .conftest import Cli

BANK = "Bank of Zürich / test 1"


@pytest.fixture
def bank(cli: Cli) -> str:
    """An environment with spaces, a slash and an umlaut in its name, which serves nothing."""
    assert cli("env", "create", BANK, "--source", "custom").code == 0
    return BANK


def test_tools(cli: Cli, bank: str, tmp_path: Path) -> None:
    made = cli(
        *("tool", "create", "pay", "--env", bank, "--description", "Pays", "--category", "money"),
        *("--parameters", '{"type": "object"}', "--needs-approval", "--json"),
    ).json
    assert (made["name"], made["environment"]) == ("pay", bank)
    assert (made["authorization_required"], made["parameters"]) == (True, {"type": "object"})

    listed = cli("tool", "list", "--env", bank, "--category", "MONEY", "--json").json
    assert [tool["id"] for tool in listed] == [made["id"]]
    assert cli("tool", "list", "--env", bank, "--limit", 1).out.count("pay") == 1
    assert cli("tool", "list", "--category", "nothing").out.startswith("No tools.")
    assert cli("tool", "get", "pay", "--env", bank, "--json").json["id"] == made["id"]

    changed = cli("tool", "update", made["id"], "--description", "Pays at once", "--json").json
    assert (changed["description"], changed["category"]) == ("Pays at once", "money")

    tools = tmp_path / "tools.yaml"
    tools.write_text("tools:\n- name: pay\n  description: again\n- name: refund\n")
    assert cli("tool", "apply", "-f", tools, "--env", bank).out == "1 created, 1 updated\n"
    put = cli("tool", "apply", "--env", bank, "--json", typed='[{"name": "refund"}]').json
    assert (put["created"], put["updated"]) == (0, 1)

    assert cli("tool", "delete", made["id"], "-y").out == f"deleted {made['id']}\n"
    assert cli("tool", "get", made["id"]).code == 3


def test_verifiers(cli: Cli, bank: str) -> None:
    made = cli(
        *("verifier", "create", "limits", "--type", "rule-based", "--env", bank, "--json"),
        *("--config", '{"conditions": ["amount <= 100"]}'),
        *("--failure-policy", '{"hard_fail": true}'),
    ).json
    id = made["id"]
    assert (made["type"], made["version"], made["failure_policy"]["hard_fail"]) == (
        "rule_based",
        1,
        True,
    )
    assert cli("verifier", "attach", id, bank, "--weight", 0.5).code == 0
    judged = cli("env", "verifiers", bank, "--json").json
    assert [(one["id"], one["weight"]) for one in judged] == [(id, 0.5)]
    assert cli("env", "detach-verifier", bank, id).code == 0
    assert cli("env", "verifiers", bank, "--json").json == []
    assert cli("env", "attach-verifier", bank, id).code == 0
    assert cli("verifier", "detach", id, bank).code == 0

    logic = '{"conditions": ["amount <= 50"]}'
    assert cli("verifier", "update", id, "--config", logic, "--json").json["version"] == 2
    assert len(cli("verifier", "versions", id, "--json").json) == 2
    assert cli("verifier", "test", id, "--state", '{"amount": 5}').code == 0
    failed = cli("verifier", "test", id, "--trajectory", '[{"tool": "pay", "amount": 60}]')
    assert (failed.code, "amount <= 50" in failed.out) == (1, True)
    copy = cli("verifier", "duplicate", id, "--json").json
    assert copy["id"] != id
    assert cli("verifier", "disable", id).out == f"{id} is disabled\n"
    assert cli("verifier", "enable", id).out == f"{id} is active\n"
    found = cli("verifier", "list", "--type", "rule_based", "--json").json
    assert {one["id"] for one in found} >= {id, copy["id"]}
    for one in (id, copy["id"]):
        assert cli("verifier", "delete", one, "--yes").code == 0
    assert cli("verifier", "get", id).code == 3


def test_scenarios_and_suites(cli: Cli, bank: str, tmp_path: Path) -> None:
    made = cli(
        *("scenario", "create", "Pay a bill", "--env", bank, "--task", "Pay 20 EUR"),
        *("--tier", 2, "--max-steps", 5, "--context", '{"balance": 20}', "--tag", "bills"),
        "--json",
    ).json
    assert (made["tier"], made["context_injection"], made["tags"]) == (
        2,
        {"balance": 20},
        ["bills"],
    )
    changed = cli("scenario", "update", made["id"], "--tier", 3, "--json").json
    assert (changed["tier"], changed["task_prompt"]) == (3, "Pay 20 EUR")

    file = tmp_path / "scenarios.yaml"
    file.write_text(
        "scenarios:\n"
        "- name: Überweisung\n"
        "  scenario_id: scn_a\n"
        "- {name: B, tier: 4}  # a comment, as YAML has them\n"
    )
    imported = cli("scenario", "import", "--file", file, "--env", bank, "--json").json
    assert [one["name"] for one in imported] == ["Überweisung", "B"]
    ids = [made["id"], *(one["id"] for one in imported)]
    assert [one["id"] for one in cli("env", "scenarios", bank, "--json").json] == ids
    assert len(cli("scenario", "list", "--env", bank, "--limit", 2, "--json").json) == 2

    suite = cli(
        *("suite", "create", "Bills", "--env", bank, "--scenario", ids[0], "--scenario", ids[1]),
        *("--purpose", "evaluation", "--json"),
    ).json
    assert (suite["scenario_ids"], suite["purpose"]) == (ids[:2], "evaluation")
    again = cli("suite", "add", suite["id"], ids[2], ids[0], "--json").json
    assert (again["scenario_ids"], again["version"]) == (ids, 2)
    assert cli("suite", "remove", suite["id"], ids[1], "--json").json["scenario_ids"] == [
        ids[0],
        ids[2],
    ]
    refused = cli("suite", "remove", suite["id"], ids[1])
    assert (refused.code, "does not list" in refused.err) == (2, True)
    renamed = cli("suite", "update", suite["id"], "--name", "All", "--json").json
    assert (renamed["name"], renamed["scenario_ids"]) == ("All", [ids[0], ids[2]])
    assert "All" in cli("suite", "list", "--env", bank, "--purpose", "evaluation").out

    assert cli("scenario", "delete", ids[0], "--yes").code == 0
    assert cli("suite", "get", suite["id"], "--json").json["scenario_ids"] == [ids[2]]
    assert cli("suite", "delete", suite["id"], "--yes").code == 0
    assert cli("suite", "get", suite["id"]).code == 3


def test_a_scenario_of_the_library_is_copied_into_an_environment(cli: Cli, bank: str) -> None:
    shipped = cli("scenario", "library", "--json").json
    if not shipped:
        assert cli("scenario", "library").out.startswith("The library has no such scenarios.")
        return
    copied = cli("scenario", "import", shipped[0]["id"], "--env", bank, "--json").json
    assert copied[0]["name"] == shipped[0]["name"]


def test_a_file_of_scenarios_with_one_that_is_wrong_imports_none(cli: Cli, bank: str) -> None:
    before = cli("scenario", "list", "--json").json

    typed = json.dumps([{"name": "good"}, {"name": "bad", "tear": 2}])
    told = cli("scenario", "import", "--file", "-", "--env", bank, typed=typed)

    assert (told.code, "scenario 1 of standard input" in told.err) == (2, True)
    assert "did you mean 'tier'?" in told.err
    assert cli("scenario", "list", "--json").json == before


def test_agents(cli: Cli, bank: str) -> None:
    made = cli(
        *("agent", "register", "Teller", "--base-model", "small", "--framework", "custom"),
        *("--not-trainable", "--category", "FinSim", "--id", "agent_teller", "--json"),
    ).json
    assert (made["id"], made["version"], made["trainable"]) == ("agent_teller", "v1", False)
    assert (
        cli("agent", "update", "agent_teller", "--name", "Clerk", "--json").json["version"] == "v2"
    )
    assert "v2" in cli("agent", "versions", "agent_teller").out
    back = cli("agent", "rollback", "agent_teller", "v1", "--json").json
    assert (back["name"], back["version"]) == ("Teller", "v3")
    checked = cli("agent", "validate", "agent_teller")
    assert checked.code in (0, 1)
    assert checked.out.splitlines()[-1] == ("valid" if checked.code == 0 else "not valid")

    bound = cli("agent", "bind", "agent_teller", bank, "--label", "trial", "--json").json
    assert (bound["label"], bound["agent_version"]) == ("trial", "v3")
    assert "trial" in cli("agent", "bindings", "agent_teller").out
    assert cli("agent", "dry-runs", "agent_teller").out == "No dry runs.\n"
    assert "Teller" in cli("agent", "list").out
    assert cli("agent", "export", "ckpt_nothing", "--agent", "agent_teller").code == 3
    assert cli("agent", "delete", "agent_teller", "--yes").code == 0
    assert cli("agent", "get", "agent_teller").code == 3


def test_data_assets(cli: Cli, bank: str, tmp_path: Path) -> None:
    content = b"id,balance\n1,20\n"
    (tmp_path / "accounts.csv").write_bytes(content)
    made = cli("data", "upload", "accounts.csv", "--json").json
    assert (made["name"], made["media_type"], made["size_bytes"]) == (
        "accounts.csv",
        "text/csv",
        len(content),
    )
    assert cli("env", "attach-data", bank, made["id"], "--config", '{"table": "a"}').code == 0
    assert "accounts.csv" in cli("env", "data", bank).out
    assert cli("env", "detach-data", bank, made["id"]).code == 0
    assert made["sha256"] in cli("data", "list").out
    assert cli("data", "download", made["id"], "copy.csv").code == 0
    assert (tmp_path / "copy.csv").read_bytes() == content
    assert cli("data", "delete", made["id"], "--yes").code == 0
    assert cli("data", "get", made["id"]).code == 3
    assert cli("data", "upload", "nothing.csv").code == 2


def test_deployments(cli: Cli, tmp_path: Path) -> None:
    cli("env", "create", "Pole", "--source", "gym://CartPole-v1", "--no-wait")
    made = cli(
        *("deploy", "create", "On-Premise", "--env", "Pole", "--cluster", "lab", "--json"),
        *("--image", "registry.example/pole:1", "--label", "team=lab", "--max-replicas", 3),
    ).json
    id = made["id"]
    assert cli("deploy", "list", "--env", "Pole", "--json").json[0]["id"] == id

    objects = [*yaml.safe_load_all(cli("deploy", "manifest", id).out)]
    assert {"Deployment", "Service"} <= {one["kind"] for one in objects}
    assert cli("deploy", "manifest", id, "--out", "pole.yaml").code == 0
    assert [*yaml.safe_load_all((tmp_path / "pole.yaml").read_text())] == objects
    assert (tmp_path / "pole.yaml").stat().st_mode & 0o077 == 0
    assert "not_connected" in cli("deploy", "status", id).out
    assert cli("deploy", "run", id).code == 0
    assert cli("deploy", "set-status", id, "running", "--message", "by hand").code == 0
    assert cli("deploy", "get", id, "--json").json["app_status"] == "running"
    assert cli("deploy", "logs", id).code == 0

    urls = '[{"label": "web", "url": "https://pole.example", "type": "dashboard"}]'
    assert cli("deploy", "set-urls", id, "--url", urls).code == 0
    assert "https://pole.example" in cli("deploy", "urls", id, "--type", "dashboard").out
    assert "https://pole.example" in cli("env", "urls", "Pole").out
    assert cli("deploy", "set-urls", id).code == 2
    assert cli("deploy", "delete", id, "--yes").code == 0
    assert cli("deploy", "get", id).code == 3


def test_what_an_environment_is_set_to(cli: Cli, bank: str) -> None:
    cli("tool", "create", "look", "--env", bank)
    assert cli("env", "configure-tools", bank, "--tool", "look", "--approval", "block").code == 0
    assert cli("env", "configure-tools", bank, "--access", "full", "--tool", "look").code == 2
    assert "look" in cli("env", "tools", bank).out
    url = "https://github.com/acme/bank.git"
    saved = cli(
        *("env", "set-repo", bank, url, "--sign-in", "pat", "--token-stdin", "--json"),
        typed="not-shown\n",
    )
    assert (saved.json["repoUrl"], saved.json["hasToken"]) == (url, True)
    assert "not-shown" not in saved.out + cli("env", "repo", bank).out
    for word in ("risk", "rollouts", "versions"):
        assert cli("env", word, bank, "--json").code == 0, word


def test_an_environment_is_cloned_changed_and_deleted(cli: Cli, bank: str) -> None:
    cli("scenario", "create", "One", "--env", bank)
    count = len(cli("env", "scenarios", bank, "--json").json)
    cloned = cli("env", "clone", bank, "Trial", "--json").json
    assert (cloned["environment"]["name"], cloned["cloned"]["scenarios"]) == ("Trial", count)
    taken = cli("env", "clone", bank, "Trial")
    assert (taken.code, "already" in taken.err) == (2, True)
    assert cli("env", "clone", bank, "Trial", "--existing").code == 0
    assert cli("env", "analyze", "Trial", "--json").code == 0
    renamed = cli("env", "update", "Trial", "--name", "Trial 2", "--json").json
    assert renamed["name"] == "Trial 2"
    assert cli("env", "update", "Trial 2").code == 2
    assert cli("env", "deprovision", "Trial 2", "--yes").code == 0
    assert cli("env", "delete", "Trial 2", "--yes").out == "deleted Trial 2\n"
    assert cli("env", "get", "Trial 2").code == 3


def test_an_environment_from_a_file_is_started_and_stopped(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "env.yaml").write_text(
        "name: Filed\nsource: gym://CartPole-v1\nkwargs:\n  max_episode_steps: 9\n"
    )
    made = cli("env", "create", "--file", "env.yaml", "--description", "mine", "--json").json
    assert (made["status"], made["kwargs"]) == ("ready", {"max_episode_steps": 9})
    assert made["description"] == "mine"
    assert "Filed@1" in cli("env", "endpoint", "Filed").out
    assert cli("env", "stop", "Filed").code == 0
    assert cli("env", "start", "Filed", "--json").json["status"] == "ready"
    assert cli("env", "wait", "Filed", "--json").json["status"] == "ready"
    assert [one["name"] for one in cli("env", "list", "--limit", 1, "--json").json] != []
    assert cli("env", "list", "--offset", 1000, "--json").json == []
