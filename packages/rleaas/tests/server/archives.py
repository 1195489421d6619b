"""Small policy and state files, made by the project's own writers."""

from __future__ import annotations

import hashlib
import re
import tempfile
import zlib
from functools import lru_cache
from pathlib import Path


@lru_cache
def policy_file(named: str = "weights", algorithm: str = "PPO") -> bytes:
    """A policy file; another for each name."""
    import torch
    from rleaas.training.checkpoint_file import Manifest, write_policy

    manifest = Manifest(
        algorithm=algorithm,
        job_id="",
        environment_name="",
        environment_version=None,
        contract_digest="",
        episode=0,
        timestep=0,
        seed=0,
        observation_space={},
        action_space={},
        packages={},
        network={"named": named},
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.zip"
        write_policy(path, manifest, {"bias": torch.zeros(2)})
        return path.read_bytes()


@lru_cache
def state_file(named: str = "optimizer") -> bytes:
    """A state file; another for each name."""
    from rleaas.training.state_file import write_state

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.zip"
        write_state(path, {"named": named})
        return path.read_bytes()


def digest_of(named: str) -> str:
    """The SHA-256 of the policy file of this name."""
    return hashlib.sha256(policy_file(named)).hexdigest()


def pdf_text(content: bytes) -> str:
    """What the pages show; strings of the font are written as they are."""
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", content, re.DOTALL)
    shown = b"".join(zlib.decompress(one) for one in streams if one[:1] == b"x")
    return b" ".join(re.findall(rb"\((.*?)\) Tj", shown)).decode("latin-1")
