"""The line at which a foreign failure becomes ours."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

from rlcore.errors import Error


@contextmanager
def boundary(
    doing: str, mapping: Mapping[type[BaseException], Callable[[BaseException], Error]]
) -> Generator[None]:
    """Replace a foreign exception raised inside the block by our own error, chained to it.

    The nearest class in the exception's own line of ancestors decides; errors of ours and what no
    entry names pass through unchanged. `doing` is attached as a note: a traceback says what was
    being done.
    """
    try:
        yield
    except Error:
        raise
    except tuple(mapping) as error:
        kind = next(base for base in type(error).__mro__ if base in mapping)
        ours = mapping[kind](error)
        ours.add_note(f"while {doing}")
        raise ours from error
