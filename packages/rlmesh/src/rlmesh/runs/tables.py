"""Aligned text: rows of cells, and names with what they stand for."""

from collections.abc import Collection, Iterable, Mapping, Sequence


def aligned(rows: Iterable[Sequence[str]], *, right: Collection[int] = ()) -> str:
    """Return rows of cells as lines, each column as wide as its widest cell.

    Args:
        rows: equally many cells in each.
        right: the columns that stand on the right, numbers for instance.
    """
    lines = [tuple(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def listed(facts: Mapping[str, str]) -> str:
    """Return names and what they stand for, one a line."""
    width = max(map(len, facts), default=0)
    return "\n".join(f"{name.ljust(width)}  {text}".rstrip() for name, text in facts.items())
