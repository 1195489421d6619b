"""The state of a world: records, the case in focus, and the facts that calls made true."""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# Plain JSON: None, bool, int, float, str, lists and objects of them. What it is, is said by the
# schema of a tool's parameters, or by the vertical that made it.
Json = Any

Record = dict[str, Json]


@dataclass(slots=True)
class State:
    """Everything that tools read and write. Agents change it only by calling tools.

    Attributes:
        tables: records by table and id.
        case: what the task is about; the prompt and suggested arguments are made of it.
        facts: flat flags and numbers that tools set, and that verifiers look at. Every key that
            the vertical knows is there from the start.
        config: the settled configuration of the world; nobody writes it.
        clock: minutes since the episode began.
    """

    tables: dict[str, dict[str, Record]] = field(default_factory=dict[str, dict[str, Record]])
    case: Record = field(default_factory=dict[str, Json])
    facts: Record = field(default_factory=dict[str, Json])
    config: Mapping[str, Json] = field(default_factory=dict[str, Json])
    clock: int = 0

    def to_json(self) -> Record:
        """What an episode's info and its verifiers see: the case, and the facts over it."""
        return {**self.case, **self.facts}

    def frozen(self) -> bytes:
        """All of it but the configuration, to be made again with `thawed`."""
        return marshal.dumps((self.tables, self.case, self.facts, self.clock))

    @classmethod
    def thawed(cls, frozen: bytes, config: Mapping[str, Json]) -> State:
        """A state of its own, equal to the one that was frozen."""
        tables, case, facts, clock = marshal.loads(frozen)
        return cls(tables, case, facts, config, clock)
