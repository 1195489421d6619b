"""Whether an agent's configuration holds together; pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

CHECKPOINT: Final = "checkpoint://"
ADDRESS: Final = "rleaas://"
_CHECKPOINTS: Final = "checkpoints/"
# What policies are saved to elsewhere; the platform cannot read such a file.
_FILES: Final = (".zip", ".pt", ".pth", ".pt2", ".onnx", ".ckpt", ".ts")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    passed: bool
    detail: str

    def to_json(self) -> dict[str, object]:
        """The check as clients read it."""
        return {"name": self.name, "passed": self.passed, "detail": self.detail}


def checkpoint_reference(model_ref: str | None) -> str | None:
    """The id of the checkpoint that a `model_ref` names; None when it names something else.

    It is `checkpoint://ID`, `rleaas://checkpoints/ID` as `rlmesh.load_model` takes it, or an id.
    """
    named = (model_ref or "").strip()
    scheme = named.partition("://")[0].lower() + "://"
    if scheme == CHECKPOINT:
        return named[len(CHECKPOINT) :]
    if scheme == ADDRESS:
        return named[len(ADDRESS) :].removeprefix(_CHECKPOINTS)
    return named if named.startswith("ckpt_") else None


def names_file(model_ref: str | None) -> bool:
    """Whether a `model_ref` is the file of a policy, which only its owner's machine has."""
    return (model_ref or "").strip().lower().endswith(_FILES)


def model_check(base_model: str, model_ref: str | None) -> Check:
    """Whether a model is named at all."""
    named = model_ref or base_model
    detail = f"the model is {named!r}" if named else "neither base_model nor model_ref is set"
    return Check("model", bool(named), detail)


def permissions_check(permissions: Sequence[str], tools: Collection[str]) -> Check:
    """Whether each permission names a tool by its id or name."""
    unknown = [one for one in permissions if one not in tools]
    if unknown:
        return Check("tool_permissions", False, f"no such tools: {', '.join(unknown[:10])}")
    return Check("tool_permissions", True, f"{len(permissions)} permissions, each names a tool")


def verdict(checks: Sequence[Check]) -> Mapping[str, object]:
    """All checks, and whether none failed."""
    return {
        "valid": all(check.passed for check in checks),
        "checks": [check.to_json() for check in checks],
    }
