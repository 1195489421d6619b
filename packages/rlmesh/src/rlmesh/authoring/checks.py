"""What a description says about its author's class: what is wrong, and what is worth knowing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, cast

# What an environment raises where this machine lacks what it needs, such as its assets or a GPU.
LOCAL: Final = frozenset({"FileNotFoundError", "ModuleNotFoundError", "ImportError", "OSError",
                          "MissingDependencyError", "PermissionError"})  # fmt: skip


@dataclass(frozen=True)
class Checked:
    """What the checks of a description found, a sentence each.

    Attributes:
        failed: what is wrong.
        warnings: what is legal and worth knowing.
        not_checked: what could not be found out on this machine.
        passed: what is in order.
    """

    failed: list[str] = field(default_factory=list[str])
    warnings: list[str] = field(default_factory=list[str])
    not_checked: list[str] = field(default_factory=list[str])
    passed: list[str] = field(default_factory=list[str])

    def to_dict(self) -> dict[str, list[str]]:
        """Return them as JSON holds them."""
        return asdict(self)


def checks_of(description: Mapping[str, Any]) -> Checked:
    """Return what a description says about its author's class."""
    checked = Checked()
    target: str = description["target"]["entrypoint"] or description["target"]["qualname"]
    if description["kind"] == "env":
        _check_tags(description, target, checked)
        _check_spec("env_spec", description["env_spec"], checked)
        contracts = description.get("env_contracts", {})
        for branch in cast("Sequence[Mapping[str, Any]]", contracts.get("branches", ())):
            where = f"env_contracts{dict(branch['params'])!r}"
            if not branch["default"]:
                _check_spec(where, branch["env_spec"], checked)
    else:
        _check_model(description, target, checked)
    _check_variants(description.get("variants", {}), checked)
    _check_runtime(description["runtime"], checked)
    return checked


def _check_tags(description: Mapping[str, Any], target: str, checked: Checked) -> None:
    tags = description["env_tags"]
    if tags is None:
        checked.warnings.append(
            f"env_tags: {target} declares no tags, so that no model can be adapted to it; "
            "models that take its observations as they are need none"
        )
    elif set(tags) == {"error"}:
        checked.failed.append(f"env_tags: {tags['error']}")
    else:
        checked.passed.append("env_tags: declared")


def _check_spec(where: str, spec: Mapping[str, Any], checked: Checked) -> None:
    if "error" not in spec:
        checked.passed.append(f"{where}: spaces read")
    elif spec["error_type"] in LOCAL:
        checked.not_checked.append(f"{where}: {spec['error_type']}: {spec['error']}")
    else:
        checked.failed.append(f"{where}: {spec['error_type']}: {spec['error']}")


def _check_model(description: Mapping[str, Any], target: str, checked: Checked) -> None:
    spec = description["model_spec"]
    if spec is None:
        checked.warnings.append(
            f"model_spec: {target} declares no spec on the class, so that it is given observations "
            "as they are; what load() sets is told at the handshake only"
        )
    elif set(spec) == {"error"}:
        checked.failed.append(f"model_spec: {spec['error']}")
    else:
        checked.passed.append("model_spec: declared")


def _check_variants(variants: Mapping[str, Any], checked: Checked) -> None:
    for name in ("catalog_error", "variations_error"):
        if name in variants:
            checked.warnings.append(f"variants.{name}: {variants[name]}")
    entries = cast("Sequence[Mapping[str, Any]]", variants.get("catalog", ()))
    broken = [entry for entry in entries if "error" in entry]
    checked.warnings.extend(f"variants: {entry['id']}: {entry['error']}" for entry in broken)
    if entries and not broken:
        checked.passed.append(f"variants: {len(entries)} can be bound")


def _check_runtime(runtime: Mapping[str, Any], checked: Checked) -> None:
    failure = runtime.get("workflow_edition_error")
    if failure is not None:
        checked.failed.append(f"runtime: {failure}")
        return
    checked.passed.append(
        f"runtime: {runtime['protocol_generation']}, edition "
        f"{runtime['preferred_workflow_edition']} of "
        f"{', '.join(runtime['supported_workflow_editions'])}"
    )
