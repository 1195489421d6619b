"""The policy of an A3C checkpoint."""

from __future__ import annotations

from pathlib import Path

from rleaas.training.actor.policy import ActorPolicy
from rleaas.training.checkpoint_file import Manifest


def load(manifest: Manifest, path: Path) -> ActorPolicy:
    """The policy in a verified file.

    Raises:
        ConfigurationError: the file does not describe a policy that can be rebuilt.
    """
    return ActorPolicy(manifest, path)
