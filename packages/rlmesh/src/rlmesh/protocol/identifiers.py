"""Identifiers that sort by the time they were made (UUID version 7)."""

from __future__ import annotations

import os
import time

_MILLISECOND_NS = 1_000_000
_BITS_62 = (1 << 62) - 1


def time_ordered_id() -> str:
    """Return a new UUIDv7 as text."""
    moment = time.time_ns() // _MILLISECOND_NS
    chance = int.from_bytes(os.urandom(10))
    # 48 bits of time, version 7, 12 random bits, variant 2, 62 random bits.
    value = (moment & (1 << 48) - 1) << 80 | 0x7 << 76 | (chance >> 68) << 64
    digits = f"{value | 0b10 << 62 | chance & _BITS_62:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
