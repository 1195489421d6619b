"""Dimensions that can exist."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Final

from rlcore import ConfigurationError

MOST_DIMENSIONS: Final = 32  # what every supported numpy allows
MOST_BYTES: Final = 2**62  # far above any message, far below where offsets overflow


def checked_shape(shape: Sequence[int] | int, itemsize: int) -> tuple[int, ...]:
    """Return the dimensions as a tuple.

    Raises:
        ConfigurationError: one is negative or no integer, or there are too many or too large ones.
    """
    try:
        dims = (
            (operator.index(shape),)
            if not isinstance(shape, Sequence)
            else tuple(operator.index(dim) for dim in shape)
        )
    except TypeError as error:
        raise ConfigurationError(f"{shape!r} is not a shape: dimensions are integers") from error
    if any(dim < 0 for dim in dims):
        raise ConfigurationError(f"{list(dims)} is not a shape: a dimension cannot be negative")
    # A dimension of 0 makes the array empty, but numpy counts with the others all the same.
    counted = math.prod(dim or 1 for dim in dims[: MOST_DIMENSIONS + 1])
    if len(dims) > MOST_DIMENSIONS or counted * itemsize > MOST_BYTES:
        raise ConfigurationError(f"an array of shape {list(dims)} is larger than any machine")
    return dims
