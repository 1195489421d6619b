"""Identifiers that sort by the time they were made (UUID version 7)."""

from __future__ import annotations

import secrets
import time
import uuid

_MILLISECOND_NS = 1_000_000


def time_ordered_id() -> str:
    """Return a new UUIDv7 as text."""
    moment = time.time_ns() // _MILLISECOND_NS
    # 48 bits of time, version 7, 12 random bits, variant 2, 62 random bits.
    value = (moment & (1 << 48) - 1) << 80 | 0x7 << 76 | secrets.randbits(12) << 64
    return str(uuid.UUID(int=value | 0b10 << 62 | secrets.randbits(62)))
