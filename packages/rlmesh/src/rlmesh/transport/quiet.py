"""Loads gRPC so that it logs failures only; imported before anything else that imports it."""

from __future__ import annotations

from rlcore.environ import defaulted

# Otherwise whoever sends a broken handshake writes a line into the server's log.
with defaulted("GRPC_VERBOSITY", "ERROR"):
    import grpc

__all__ = ["grpc"]
