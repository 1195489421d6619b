"""The names of the remote procedures."""

from __future__ import annotations

ENV_SERVICE = "rlmesh.env.v1.EnvService"
HANDSHAKE = f"/{ENV_SERVICE}/Handshake"
JOIN = f"/{ENV_SERVICE}/Join"
SHUTDOWN = f"/{ENV_SERVICE}/Shutdown"

HEALTH_SERVICE = "grpc.health.v1.Health"
HEALTH_CHECK = f"/{HEALTH_SERVICE}/Check"
