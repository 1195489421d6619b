"""Which tools of a world an environment lets its episodes call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rleaas.sims.state import Json
from rleaas.sims.tool import Refused, Tool

READING = ("read", "search")
NOT_PERMITTED = "tool_not_permitted"
APPROVAL_NEEDED = "approval_needed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAccess:
    """What `env.configure_tools` said.

    Attributes:
        reads_only: only tools that read or search may be called.
        names: only these tools may be called; None are all.
        approves: whether calls of approval tools go through. If not, each is refused, as nobody
            can be asked while an episode runs.
    """

    reads_only: bool = False
    names: frozenset[str] | None = None
    approves: bool = True

    @classmethod
    def of(cls, told: Mapping[str, Json]) -> ToolAccess:
        """What an environment's file tells under `tool_access`."""
        names = told.get("tool_names")
        return cls(
            reads_only=told.get("access_pattern") == "read_only",
            names=None if names is None else frozenset(names),
            approves=told.get("approval_mode") in (None, "auto_grant"),
        )

    def refusal(self, tool: Tool) -> Refused | None:
        """Why the tool may not be called; None: it may."""
        if self.reads_only and tool.category not in READING:
            return Refused(
                NOT_PERMITTED, f"{tool.name} writes, and this environment may only be read"
            )
        if self.names is not None and tool.name not in self.names:
            return Refused(NOT_PERMITTED, f"this environment does not permit {tool.name}")
        if not self.approves and tool.category == "approval":
            return Refused(
                APPROVAL_NEEDED,
                f"{tool.name} needs an approval that nobody gives during an episode",
            )
        return None
