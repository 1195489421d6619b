"""What an export is asked for, and what came of it: JSON between the server and the worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOrder:
    """One export.

    Attributes:
        checkpoint_id: of what.
        form: `safetensors`, `pytorch`, `onnx` or `huggingface`.
        source: the policy file, whose digest was checked.
        target: the file to write.
        facts: what is known of the checkpoint; None leaves it out of the file.
    """

    checkpoint_id: str
    form: str
    source: Path
    target: Path
    facts: Mapping[str, object] | None

    def to_json(self) -> dict[str, object]:
        """The order as the worker reads it."""
        return {**asdict(self), "source": str(self.source), "target": str(self.target)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ExportOrder:  # what JSON can be
        """The order that `to_json` wrote."""
        return cls(
            checkpoint_id=data["checkpoint_id"],
            form=data["form"],
            source=Path(data["source"]),
            target=Path(data["target"]),
            facts=data["facts"],
        )
