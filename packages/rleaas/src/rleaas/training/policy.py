"""A checkpoint's policy as an rlmesh Model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlcore import ConfigurationError, MissingDependencyError

from rleaas.training.algorithms import validate_algorithm
from rleaas.training.file_digest import file_digest

if TYPE_CHECKING:
    import rlmesh.numpy


def load_policy(path: Path, algorithm: str | None = None) -> rlmesh.numpy.Model[Any, Any]:
    """The policy of a checkpoint file, as a Model that always takes its best action.

    Verify the file's SHA-256 first (`checkpoint.load()` does). The file is not unpickled: the
    network is rebuilt from the manifest and its weights are read as plain tensors, so code hidden
    in a checkpoint does not run.

    Args:
        path: the checkpoint file.
        algorithm: what it must have been trained by; None accepts what the manifest says.

    Raises:
        ConfigurationError: the file is not a checkpoint of this product, or of another algorithm.
        MissingDependencyError: what the policy's family needs is not installed.
    """
    try:
        import rlmesh.numpy

        from rleaas.training.loaded_policy import open_policy
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"loading checkpoint {path.name!r} needs {error.name!r}, which is not installed",
            hint="Install the extra: pip install 'rleaas[train]'",
        ) from error
    policy = open_policy(path)
    manifest = policy.manifest
    if algorithm is not None and manifest.algorithm != validate_algorithm(algorithm):
        raise ConfigurationError(
            f"checkpoint {path.name!r} was trained by {manifest.algorithm!r}, not {algorithm!r}"
        )
    return rlmesh.numpy.Model(
        policy.predict,
        name=f"{manifest.algorithm} {manifest.job_id} episode {manifest.episode}",
        digest=f"sha256:{file_digest(path)}",
    )
