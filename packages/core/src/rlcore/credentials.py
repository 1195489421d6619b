"""Who is asking, and how that is said to each plane."""

from __future__ import annotations

from dataclasses import dataclass

from rlcore.secret import Secret


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A long-lived key of a user or program."""

    secret: Secret

    def http_headers(self) -> dict[str, str]:
        """Return the headers that carry the key to the control plane."""
        return {"Authorization": f"Bearer {self.secret.reveal()}"}

    def grpc_metadata(self) -> tuple[tuple[str, str], ...]:
        """Return the metadata that carries the key to the data plane."""
        return bare_token(self.secret)


@dataclass(frozen=True, slots=True)
class Bearer:
    """A short-lived token, such as an endpoint's or a job's."""

    token: Secret

    def http_headers(self) -> dict[str, str]:
        """Return the headers that carry the token to the control plane."""
        return {"Authorization": f"Bearer {self.token.reveal()}"}

    def grpc_metadata(self) -> tuple[tuple[str, str], ...]:
        """Return the metadata that carries the token to the data plane."""
        return bare_token(self.token)


@dataclass(frozen=True, slots=True)
class Anonymous:
    """Nobody in particular."""

    def http_headers(self) -> dict[str, str]:
        """Return no headers."""
        return {}

    def grpc_metadata(self) -> tuple[tuple[str, str], ...]:
        """Return no metadata."""
        return ()


Credential = ApiKey | Bearer | Anonymous
ANONYMOUS = Anonymous()


def bare_token(secret: Secret) -> tuple[tuple[str, str], ...]:
    """Return gRPC metadata: the wire wants the bare token, without the word Bearer."""
    return (("authorization", secret.reveal()),)
