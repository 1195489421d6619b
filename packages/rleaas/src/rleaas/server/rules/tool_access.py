"""Which tools an episode may call, and what happens to a call that needs approval."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Literal

AccessPattern = Literal["full", "read_only"]
ApprovalMode = Literal["auto_grant", "block", "real_approval"]

READING_TYPES: Final = frozenset({"read", "search"})


def problem_with(
    access_pattern: str | None, tool_names: Sequence[str] | None, known: Collection[str]
) -> str | None:
    """Say what is wrong with a configuration; None when it can be kept.

    Args:
        access_pattern: the pattern, where one is asked for.
        tool_names: the tools, where they are listed.
        known: ids and names of the tools that the environment has.
    """
    if tool_names is None:
        return None
    if access_pattern is not None:
        return "access_pattern and tool_names say the same thing in two ways; send one of them"
    unknown = [name for name in tool_names if name not in known]
    if unknown:
        return f"the environment has no tool {unknown[0]!r}; register it first"
    return None


def settled(given: Mapping[str, object]) -> dict[str, object]:
    """Return what a configuration changes: a pattern replaces a list, and a list a pattern."""
    changes = dict(given)
    if "tool_names" in changes:
        changes["access_pattern"] = None
    elif "access_pattern" in changes:
        changes["tool_names"] = None
    return changes
