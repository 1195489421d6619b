"""The state of a world: records, the case in focus, and the facts that calls made true."""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rleaas.sims.table import LARGE, Copied, Kept, Table

# Plain JSON: None, bool, int, float, str, lists and objects of them. What it is, is said by the
# schema of a tool's parameters, or by the vertical that made it.
Json = Any

Record = dict[str, Json]

Frozen = tuple[bytes, Mapping[str, Kept]]
"""All of a state but its configuration: small tables and facts, and large tables."""


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

    tables: dict[str, Table] = field(default_factory=dict[str, Table])
    case: Record = field(default_factory=dict[str, Json])
    facts: Record = field(default_factory=dict[str, Json])
    config: Mapping[str, Json] = field(default_factory=dict[str, Json])
    clock: int = 0

    def to_json(self) -> Record:
        """What an episode's info and its verifiers see: the case, and the facts over it."""
        return {**self.case, **self.facts}

    def frozen(self) -> Frozen:
        """All of it but the configuration, to be made again with `thawed`."""
        large = {name: Kept(rows) for name, rows in self.tables.items() if len(rows) > LARGE}
        # A large one leaves its place, so that tables keep their order.
        small = {name: {} if name in large else dict(rows) for name, rows in self.tables.items()}
        return marshal.dumps((small, self.case, self.facts, self.clock)), large

    @classmethod
    def thawed(cls, frozen: Frozen, config: Mapping[str, Json]) -> State:
        """A state of its own, equal to the one that was frozen."""
        small, large = frozen
        tables, case, facts, clock = marshal.loads(small)
        for name, kept in large.items():
            tables[name] = Copied(kept)
        return cls(tables, case, facts, config, clock)
