"""What stands where in a frame that carries a value: the leaves of all lanes, side by side."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from rlmesh.protocol.messages import Buffer, Leaves
from rlmesh.transport.frames import Garbled

# Arrays are made over what is received; their elements have to be aligned.
ALIGNED: Final = 8
# Layouts that one connection remembers; text may have a new length in every value.
REMEMBERED: Final = 64
NO_PAD: Final = b""


class Layout:
    """Where the leaves of one value are, when they have certain sizes.

    Attributes:
        table: the sizes, as they stand before the leaves.
        slices: where each leaf begins and ends, from the end of the table.
        pads: what follows each leaf; None where nothing does.
        size: the bytes of all leaves with their pads.
        span: the bytes of the table and all leaves.
        kept: views of the leaves in a buffer that is used again and again, by who has made them.
    """

    __slots__ = ("kept", "pads", "size", "slices", "span", "table")

    def __init__(self, sizes: tuple[int, ...]) -> None:
        table = struct.pack(f"<{len(sizes)}I", *sizes)
        self.table = table + bytes(-len(table) % ALIGNED)
        self.slices: list[tuple[int, int]] = []
        pads: list[bytes] = []
        at = 0
        for size in sizes:
            self.slices.append((at, at + size))
            pads.append(bytes(-size % ALIGNED))
            at += size + len(pads[-1])
        self.pads = pads if any(pads) else None
        self.size = at
        self.span = len(self.table) + at
        self.kept: list[Buffer] | None = None


class Layouts:
    """The layouts that one side of a connection has met lately."""

    def __init__(self) -> None:
        self._by_sizes: dict[tuple[int, ...], Layout] = {}
        self._by_table: dict[bytes, Layout] = {}
        self.find = self._by_sizes.get
        self.recall = self._by_table.get

    def of(self, leaves: Leaves) -> Layout:
        """Return where these leaves are to stand."""
        sizes = tuple(map(len, leaves))
        return self.find(sizes) or self._remember(sizes)

    def read(self, frame: memoryview, at: int, count: int) -> tuple[Layout, int]:
        """Return the layout whose table of `count` sizes begins at `at`, and where it ends.

        Raises:
            Garbled: the table is cut off.
        """
        end = at + table_size(count)
        if end > len(frame):
            raise Garbled("a frame with more leaves than it has room for")
        table = bytes(frame[at:end])
        layout = self._by_table.get(table)
        if layout is None or len(layout.slices) != count:
            layout = self._remember(struct.unpack_from(f"<{count}I", table))
        return layout, end

    def _remember(self, sizes: tuple[int, ...]) -> Layout:
        layout = Layout(sizes)
        if len(self._by_sizes) >= REMEMBERED:
            self._by_sizes.clear()
            self._by_table.clear()
        self._by_sizes[sizes] = self._by_table[layout.table] = layout
        return layout


def table_size(count: int) -> int:
    """Return how many bytes the sizes of so many leaves take."""
    return (4 * count + ALIGNED - 1) // ALIGNED * ALIGNED


@lru_cache(maxsize=64)
def marks_of(lanes: int) -> struct.Struct:
    """Return the form of a head with the rewards and flags of so many lanes after it.

    At its end are the nanoseconds that the server had the step, and that its environment had it.
    """
    pad = -(10 * lanes) % ALIGNED
    return struct.Struct(f"<IIQIIII{lanes}d{lanes}s{lanes}s{pad}xQQ")


def pieces(head: bytes, layout: Layout, leaves: Leaves, tail: bytes) -> Sequence[Buffer]:
    """Return a frame in pieces, ready to be sent."""
    if layout.pads is None:
        return (head, layout.table, *leaves, tail) if tail else (head, layout.table, *leaves)
    parts: list[Buffer] = [head, layout.table]
    for leaf, pad in zip(leaves, layout.pads, strict=True):
        parts.append(leaf)
        if pad:
            parts.append(pad)
    parts.append(tail)
    return parts


def views(frame: memoryview, start: int, layout: Layout) -> list[Buffer]:
    """Return the leaves that begin at `start`, as views of the frame's memory."""
    return [frame[start + begin : start + end] for begin, end in layout.slices]
