"""What both sides of a connection are set to."""

from __future__ import annotations

import sys

# gRPC's own 4 MiB is too little for a batch of camera frames; the published peers take this much.
MESSAGE_BYTES = 256 * 1024 * 1024
UNCOMPRESSED = 1
# A client should have noticed before the server, which keeps a lost session 20 s, forgets it.
KEEPALIVE_SECONDS = 10.0
# What part of its lease a session's client may be silent until it counts as gone: a little less
# than the half, so that it is noticed within that and not just after.
SILENT_PART = 0.45
# Every client that waits for a session holds a thread; more of them are sent away at once.
LONGEST_QUEUE = 1024

# What a session needs at most: its connection, the process at the other end of it, memory that
# both share, and a process of its own. The rest is for everything else.
FILES_PER_SESSION = 5
SPARE_FILES = 256

Options = list[tuple[str, int | str]]


def message_options(limit: int) -> Options:
    """Return the channel arguments that allow messages of up to `limit` bytes each way."""
    return [
        ("grpc.max_receive_message_length", limit),
        ("grpc.max_send_message_length", limit),
        # None: a message would be unpacked before its size is looked at. No peer packs any.
        ("grpc.compression_enabled_algorithms_bitset", UNCOMPRESSED),
    ]


def keepalive_options(seconds: float = KEEPALIVE_SECONDS) -> Options:
    """Return the channel arguments that notice a vanished peer, also while nobody steps.

    Args:
        seconds: how long that may take.
    """
    half = max(1, int(seconds * 1000 * SILENT_PART))
    return [
        ("grpc.keepalive_time_ms", half),
        ("grpc.keepalive_timeout_ms", half),
        # What counts in today's gRPC; the other is for older ones.
        ("grpc.http2.ping_timeout_ms", half),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        # Published clients ping every 30 s, idle or not, which gRPC would punish as abuse.
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 1),
        ("grpc.http2.max_ping_strikes", 0),
    ]


def allow_files(sessions: int) -> int | None:
    """Let this process have as many open files as so many sessions may need.

    Returns:
        how many it may have, where that is too few and cannot be changed from here; else None.
    """
    if sys.platform == "win32":
        return None
    import resource

    needed = sessions * FILES_PER_SESSION + SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return None
    most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return None if most >= needed else most
