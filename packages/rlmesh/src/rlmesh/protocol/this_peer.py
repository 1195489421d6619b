"""How this process introduces itself."""

from __future__ import annotations

import functools
import platform
import sys
from importlib import metadata

from rlmesh.protocol.editions import EDITION
from rlmesh.protocol.handshake import Peer

ENV_COMPONENT = "rlmesh-env"
FRAMEWORKS = ("numpy", "torch", "jax", "jaxlib", "gymnasium")
_OS_NAMES = {"darwin": "macos", "win32": "windows"}


@functools.cache
def this_peer(component: str = ENV_COMPONENT) -> Peer:
    """Return the description of this process."""
    return Peer(
        component=component,
        package_version=_version("rlmesh") or "",
        language="python",
        language_version=platform.python_version(),
        os=_OS_NAMES.get(sys.platform, sys.platform),
        os_version=platform.release(),
        arch=platform.machine(),
        framework_versions={name: found for name in FRAMEWORKS if (found := _version(name))},
        extra={"rlmesh.workflow.base": EDITION, "rlmesh.workflow.edition": EDITION},
    )


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
