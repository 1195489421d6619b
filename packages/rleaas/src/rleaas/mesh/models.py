"""Checkpoints for `rlmesh.load_model`, which finds both functions through entry points.

`rleaas://checkpoints/ID` is one on the platform; a file of the format `rleaas.checkpoint.v1` is one
that was downloaded.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rlcore import AddressError, ConfigurationError

from rleaas.client import Client

if TYPE_CHECKING:
    import rlmesh.numpy

_PREFIX: Final = "rleaas://checkpoints/"


def load(
    address: str, *, device: object = None, deterministic: bool = True, name: str | None = None
) -> rlmesh.numpy.Model[Any, Any]:
    """Return the policy of a checkpoint on the platform, as `checkpoint.load()` does.

    The platform and the key are those of the environment variables or the profile, as for a
    `Client` without arguments.

    Raises:
        AddressError: it is not `rleaas://checkpoints/ID`.
        CheckpointNotFound: there is no such checkpoint.
        ConfigurationError: an option that checkpoints do not have.
    """
    checkpoint = address[len(_PREFIX) :] if address.startswith(_PREFIX) else ""
    if not checkpoint or "/" in checkpoint:
        raise AddressError(
            f"{address!r} is no address of a model",
            hint=f"Write {_PREFIX}ID; an environment's address goes where environments go.",
        )
    _refuse(device, deterministic)
    with Client() as client:
        model = client.Checkpoint.get(checkpoint).load()
    return _named(model, name)


def load_file(
    path: Path, *, device: object = None, deterministic: bool = True, name: str | None = None
) -> rlmesh.numpy.Model[Any, Any]:
    """Return the policy of a checkpoint's file; nothing in it is executed.

    Raises:
        ConfigurationError: it cannot be read, or an option is given that checkpoints do not have.
        MissingDependencyError: the extra `rleaas[train]` is not installed.
    """
    from rleaas.training.policy import load_policy

    _refuse(device, deterministic)
    return _named(load_policy(path), name)


def _refuse(device: object, deterministic: bool) -> None:
    if device not in (None, "cpu") or not deterministic:
        what = f"device={device!r}" if deterministic else "deterministic=False"
        raise ConfigurationError(
            f"{what} is not for checkpoints: their policies compute on the CPU and take their best "
            "action",
            hint="Leave it out.",
        )


def _named(model: rlmesh.numpy.Model[Any, Any], name: str | None) -> rlmesh.numpy.Model[Any, Any]:
    if name is not None:
        model.name = name
    return model
