"""Which build of rlmesh this is, and what it speaks."""

from dataclasses import dataclass
from functools import cache
from importlib.metadata import version

from rlmesh.protocol.editions import EDITION, EDITIONS, GENERATION


@dataclass(frozen=True, slots=True)
class BuildInfo:
    """The version of this installation and the protocol it speaks."""

    version: str
    protocol_generation: str
    workflow_edition: str
    supported_workflow_editions: tuple[str, ...]


@cache
def build_info() -> BuildInfo:
    """Return what this installation is."""
    return BuildInfo(
        version=version("rlmesh"),
        protocol_generation=GENERATION,
        workflow_edition=EDITION,
        supported_workflow_editions=EDITIONS,
    )


def current_workflow_edition() -> str:
    """Return the workflow edition that this installation prefers."""
    return EDITION
