"""The policy in a checkpoint's file, whatever family of algorithms made it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from rlcore import ConfigurationError, MissingDependencyError

from rleaas.training.checkpoint_file import Manifest, read_manifest

if TYPE_CHECKING:
    import torch

# Each room has `load(manifest, path) -> LoadedPolicy`; imported only for files of its family.
FAMILIES: Final[Mapping[str, str]] = {
    "sb3": "rleaas.training.sb3.policy",
    "grpo": "rleaas.training.grpo.policy",
    "a3c": "rleaas.training.a3c.policy",
    "slm": "rleaas.training.slm.policy",
}
_EXTRAS: Final[Mapping[str, str]] = {"slm": "llm"}


class LoadedPolicy(Protocol):
    """A trained network between the environment's observations and its actions."""

    @property
    def manifest(self) -> Manifest:
        """What the file says about itself."""
        ...

    def predict(self, observation: Any) -> Any:  # what the spaces say
        """The best action for one observation of the environment.

        Raises:
            InvalidObservationError: it is not of the space that the policy was trained on.
        """
        ...

    def network(self) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
        """The network and an example of its inputs, in the order of its arguments.

        It maps a batch of the learner's observations (what `policy_observation_space` says; a
        Dict has an input per key) to the actions that `predict` takes, as the learner counts them.

        Raises:
            UnsupportedRequestError: the policy is no such network, as a language model is none.
        """
        ...


def open_policy(path: Path) -> LoadedPolicy:
    """The policy in a verified file.

    Raises:
        ConfigurationError: the file is not a checkpoint of this product.
        MissingDependencyError: what its family needs is not installed.
    """
    manifest = read_manifest(path)
    room = FAMILIES.get(manifest.family)
    if room is None:
        raise ConfigurationError(
            f"checkpoint {path.name!r} is of the family {manifest.family!r}, which this release "
            "does not know",
            code="checkpoint_unreadable",
            hint="Use the release that wrote it, or a newer one",
        )
    try:
        module = importlib.import_module(room)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get(manifest.family, "train")
        raise MissingDependencyError(
            f"loading checkpoint {path.name!r} needs {error.name!r}, which is not installed",
            hint=f"Install the extra: pip install 'rleaas[{extra}]'",
        ) from error
    return cast("LoadedPolicy", module.load(manifest, path))
