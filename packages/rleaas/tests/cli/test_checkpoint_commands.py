"""Checkpoints from the command line: which there are, which is the best, what made it, its file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from rleaas import Client
from rleaas.server.local import LocalServer

from ..sdk.conftest import served  # noqa: TID252 - the stand-ins of the SDK's own tests
from ..server.archives import digest_of, policy_file  # noqa: TID252 - the stand-in workers send it
from .conftest import Cli

PLAN: list[tuple[str, dict[str, object]]] = [
    ("checkpoint", {"episode": 1, "avg_reward": 1.0, "content": "early"}),
    ("checkpoint", {"episode": 2, "avg_reward": 7.0, "content": "better"}),
    ("checkpoint", {"episode": 3, "avg_reward": 3.0, "content": "late"}),
    ("completed", {}),
]


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with served(tmp_path_factory.mktemp("platform"), plan=PLAN) as server:
        yield server


@pytest.fixture(scope="module")
def job(platform: LocalServer) -> str:
    with Client(base_url=platform.url) as client:
        env = client.Environment.create("CartPole", source="gym://CartPole-v1").wait_until_ready()
        started = client.TrainingJob.run(env, config={"seed": 5, "gamma": 0.9})
        return started.wait_until_complete(timeout=50, progress=False).id


def test_the_checkpoints_of_a_job_are_listed_and_the_best_is_found(cli: Cli, job: str) -> None:
    listed = cli("checkpoint", "list", job, "--json").json
    assert [one["card"] for one in listed] == [
        cli("checkpoint", "show", one["id"], "--json").json["card"] for one in listed
    ]
    assert listed[0]["card"]["network"] == {"named": "early"}
    assert [one["episode"] for one in listed] == [1, 2, 3]
    assert cli("checkpoint", "best", job, "--json").json["episode"] == 2
    assert cli("checkpoint", "best", job, "--lowest", "--json").json["episode"] == 1
    unknown = cli("checkpoint", "best", job, "--metric", "avg_loss")
    assert unknown.code == 2
    assert "They have avg_reward" in unknown.err


def test_a_checkpoint_is_shown_with_its_card(cli: Cli, job: str) -> None:
    shown = cli("checkpoint", "show", f"ckpt_{job}_2", "--json").json
    assert shown["metrics"] == {"avg_reward": 7.0}
    assert shown["card"]["hyperparameters"]["gamma"] == 0.9
    text = cli("checkpoint", "show", f"ckpt_{job}_2").out
    assert digest_of("better") in text
    assert "gamma" in text


def test_a_file_is_saved_and_an_export_too(cli: Cli, job: str, tmp_path: Path) -> None:
    assert cli("checkpoint", "download", f"ckpt_{job}_2", "policy.zip").code == 0
    assert (tmp_path / "policy.zip").read_bytes() == policy_file("better")
    made = cli(
        *("agent", "export", f"ckpt_{job}_2", "--format", "onnx", "--out", "p.onnx", "--json")
    ).json
    assert (tmp_path / "p.onnx").read_bytes() == b"onnx of " + policy_file("better")
    assert made["sha256"] == hashlib.sha256(b"onnx of " + policy_file("better")).hexdigest()
