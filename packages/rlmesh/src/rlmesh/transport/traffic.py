"""How many bytes a carrier has carried."""

from __future__ import annotations


class Traffic:
    """Bytes of one direction and the other, as the server sees them; its carrier's thread counts.

    Attributes:
        received: what clients sent.
        sent: what they were sent.
        shared: what they read from memory that both sides share, instead of being sent it.
    """

    __slots__ = ("received", "sent", "shared")

    def __init__(self) -> None:
        self.received = 0
        self.sent = 0
        self.shared = 0

    def add(self, other: Traffic) -> None:
        """Count all that another one has counted."""
        self.received += other.received
        self.sent += other.sent
        self.shared += other.shared

    def to_dict(self) -> dict[str, int]:
        """Return it as plain data."""
        return {"received": self.received, "sent": self.sent, "shared": self.shared}
