"""The checkpoint file: a stable-baselines3 zip with a manifest inside.

`PPO.load` of stable-baselines3 reads it too. Ours never unpickles: a policy is rebuilt from the
manifest and its weights are read as plain tensors.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import torch
from rlcore import ConfigurationError, EnvironmentIdentity

MANIFEST = "manifest.json"
FORMAT = "rleaas.checkpoint.v1"
_PACKAGES = ("rleaas", "rlmesh", "stable-baselines3", "torch", "gymnasium", "numpy")
# A manifest is a page of text; more is not one of ours.
_MANIFEST_LIMIT = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a checkpoint says about itself.

    `observation_space` and `action_space` are the environment's; `policy_observation_space` is
    what the network takes, which differs for images (channels first).
    """

    algorithm: str
    job_id: str
    environment_name: str
    environment_version: int | None
    contract_digest: str
    episode: int
    timestep: int
    seed: int
    policy: str
    policy_kwargs: Mapping[str, object]
    observation_space: Mapping[str, object]
    action_space: Mapping[str, object]
    policy_observation_space: Mapping[str, object]
    packages: Mapping[str, str]
    format: str = FORMAT

    @property
    def environment(self) -> EnvironmentIdentity:
        """The environment that the policy was trained on."""
        return EnvironmentIdentity(
            self.environment_name, self.environment_version, self.contract_digest
        )


def package_versions() -> dict[str, str]:
    """The installed versions of what a training result depends on."""
    return {name: version(name) for name in _PACKAGES}


def write_checkpoint(path: Path, save: Callable[[io.BytesIO], None], manifest: Manifest) -> None:
    """Write a complete checkpoint to `path`, or nothing at all.

    `save` writes the stable-baselines3 zip into the buffer it is given.
    """
    buffer = io.BytesIO()
    save(buffer)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(MANIFEST, json.dumps(asdict(manifest), indent=1, allow_nan=False))
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("wb") as file:
        file.write(buffer.getbuffer())
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def read_manifest(path: Path) -> Manifest:
    """What the checkpoint at `path` says about itself.

    Raises:
        ConfigurationError: the file is not a checkpoint of ours.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(MANIFEST).file_size > _MANIFEST_LIMIT:
                raise ValueError("its manifest is too large")
            data = json.loads(archive.read(MANIFEST))
        if data.get("format") != FORMAT:
            raise ValueError(f"its format is {data.get('format')!r}, not {FORMAT!r}")
        return Manifest(**data)
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError) as error:
        raise _not_ours(path, error) from error


def read_tensors(path: Path, member: str) -> dict[str, Any]:
    """A state dict out of the checkpoint, read as tensors only: no code in it can run.

    Raises:
        ConfigurationError: the member is missing or is not a plain state dict.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            raw = archive.read(member)
        loaded = torch.load(io.BytesIO(raw), map_location="cpu", weights_only=True)
    except Exception as error:
        # torch.load documents no exception classes: a damaged file raises nearly anything.
        raise _not_ours(path, error) from error
    return cast("dict[str, Any]", loaded)


def _not_ours(path: Path, error: Exception) -> ConfigurationError:
    return ConfigurationError(
        f"{path.name!r} is not a readable checkpoint: {type(error).__name__}: {error}",
        code="checkpoint_unreadable",
        hint="Download it again, or name another checkpoint",
    )
