"""The policy file of a checkpoint: a zip with a manifest, the weights, and what the library wrote.

The weights of every family are in `policy.safetensors`. For stable-baselines3 the members that its
own `load` reads are beside them. Ours never unpickles: a policy is rebuilt from the manifest and
its weights are read as plain tensors. What an exact resume needs beside the policy is in a file of
its own, see `state_file`.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, cast

import safetensors.torch
import torch
from rlcore import ConfigurationError, EnvironmentIdentity

from rleaas.training import archive_formats
from rleaas.training.whole_archive import whole_archive

MANIFEST: Final = archive_formats.MANIFEST
WEIGHTS: Final = archive_formats.WEIGHTS
FORMAT: Final = archive_formats.POLICY_FORMAT
_PACKAGES = (
    "rleaas",
    "rlmesh",
    "gymnasium",
    "numpy",
    "torch",
    "stable-baselines3",
    "transformers",
    "trl",
    "peft",
)
# A manifest is a page of text; more is not one of ours.
_MANIFEST_LIMIT = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a checkpoint says about itself; files without a `family` are of stable-baselines3.

    Attributes:
        family: whose policy it is, which says what can load it: `sb3`, `grpo`, `a3c` or `slm`.
        network: what the family rebuilds the network from, beside the spaces.
        hyperparameters: what the algorithm was run with, defaults filled in.
        metrics: figures at this moment, such as `avg_reward`; only those that there are.
        seeds: every seed that had a part, by what it was for.
        observation_space: the environment's.
        action_space: the environment's.
        policy_observation_space: what the network takes, which differs for images (channels
            first); empty: what `learner_space` makes of the environment's.
        policy: the class of the network, where stable-baselines3 made it.
        policy_kwargs: the arguments of that class.
    """

    algorithm: str
    job_id: str
    environment_name: str
    environment_version: int | None
    contract_digest: str
    episode: int
    timestep: int
    seed: int
    observation_space: Mapping[str, object]
    action_space: Mapping[str, object]
    packages: Mapping[str, str]
    policy: str = ""
    policy_kwargs: Mapping[str, object] = field(default_factory=dict[str, object])
    policy_observation_space: Mapping[str, object] = field(default_factory=dict[str, object])
    family: str = "sb3"
    network: Mapping[str, object] = field(default_factory=dict[str, object])
    hyperparameters: Mapping[str, object] = field(default_factory=dict[str, object])
    metrics: Mapping[str, object] = field(default_factory=dict[str, object])
    seeds: Mapping[str, object] = field(default_factory=dict[str, object])
    format: str = FORMAT

    @property
    def environment(self) -> EnvironmentIdentity:
        """The environment that the policy was trained on."""
        return EnvironmentIdentity(
            self.environment_name, self.environment_version, self.contract_digest
        )


_FIELDS = frozenset(one.name for one in fields(Manifest))


def package_versions() -> dict[str, str]:
    """The versions of what a training result depends on, of those that are installed."""
    found: dict[str, str] = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue  # not of this installation, so nothing depends on it
    return found


def write_policy(
    path: Path,
    manifest: Manifest,
    weights: Mapping[str, torch.Tensor],
    *,
    library: Callable[[io.BytesIO], object] | None = None,
    files: Mapping[str, bytes | Path] | None = None,
) -> None:
    """Write a complete policy file to `path`, or nothing at all.

    Args:
        path: where it is to be; what is there is replaced.
        manifest: what it says about itself.
        weights: the tensors of the network that acts.
        library: writes the library's own zip into the buffer it is given; its members become
            members of this file, so that the library's `load` reads this file too.
        files: further members by name, as bytes or files, such as `hf/config.json`.
    """
    text = json.dumps(asdict(manifest), indent=1, allow_nan=False)
    # Each on its own: tensors that share memory cannot be written.
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in weights.items()}
    content = safetensors.torch.save(plain, metadata={"format": "pt"})
    with whole_archive(path) as archive:
        if library is not None:
            buffer = io.BytesIO()
            library(buffer)
            with zipfile.ZipFile(buffer) as own:
                archive.copy(own)
        archive.add(WEIGHTS, content)
        for name, one in (files or {}).items():
            archive.add(name, one)
        archive.add(MANIFEST, text.encode(), pack=True)


def read_manifest(path: Path) -> Manifest:
    """What the checkpoint at `path` says about itself.

    Raises:
        ConfigurationError: the file is not a checkpoint of ours.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(MANIFEST).file_size > _MANIFEST_LIMIT:
                raise ValueError("its manifest is too large")
            data = cast("dict[str, Any]", json.loads(archive.read(MANIFEST)))
        if data.get("format") != FORMAT:
            raise ValueError(f"its format is {data.get('format')!r}, not {FORMAT!r}")
        # What a later release adds to the format is not for this one.
        return Manifest(**{name: value for name, value in data.items() if name in _FIELDS})
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError) as error:
        raise _not_ours(path, error) from error


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of the network that acts; also of files that were written before safetensors.

    Raises:
        ConfigurationError: they are missing or damaged.
    """
    if not has_member(path, WEIGHTS):
        return read_tensors(path, "policy.pth")
    try:
        return safetensors.torch.load(read_member(path, WEIGHTS))
    except Exception as error:
        # Damaged safetensors raise exceptions of their own that no stub names.
        raise _not_ours(path, error) from error


def read_tensors(path: Path, member: str) -> dict[str, Any]:
    """A state dict of torch's own format, read as tensors only: no code in it can run.

    Raises:
        ConfigurationError: the member is missing or is not a plain state dict.
    """
    try:
        loaded = torch.load(
            io.BytesIO(read_member(path, member)), map_location="cpu", weights_only=True
        )
    except ConfigurationError:
        raise
    except Exception as error:
        # torch.load documents no exception classes: a damaged file raises nearly anything.
        raise _not_ours(path, error) from error
    return cast("dict[str, Any]", loaded)


def members(path: Path) -> list[str]:
    """The names of everything in the file.

    Raises:
        ConfigurationError: the file is none of ours.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except (OSError, zipfile.BadZipFile) as error:
        raise _not_ours(path, error) from error


def has_member(path: Path, member: str) -> bool:
    """Whether there is a member of this name.

    Raises:
        ConfigurationError: the file is none of ours.
    """
    return member in members(path)


def read_member(path: Path, member: str) -> bytes:
    """The bytes of a member.

    Raises:
        ConfigurationError: it is missing or damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.read(member)
    except (OSError, zipfile.BadZipFile, KeyError) as error:
        raise _not_ours(path, error) from error


def _not_ours(path: Path, error: Exception) -> ConfigurationError:
    return ConfigurationError(
        f"{path.name!r} is not a readable checkpoint: {type(error).__name__}: {error}",
        code="checkpoint_unreadable",
        hint="Download it again, or name another checkpoint",
    )
