"""The names of the remote procedures."""

from __future__ import annotations

ENV_SERVICE = "rlmesh.env.v1.EnvService"
HANDSHAKE = f"/{ENV_SERVICE}/Handshake"
JOIN = f"/{ENV_SERVICE}/Join"
SHUTDOWN = f"/{ENV_SERVICE}/Shutdown"
# Ours: a client says that it will not come back to a session; what it says stands in the headers.
LEAVE = f"/{ENV_SERVICE}/Leave"

MODEL_SERVICE = "rlmesh.model.v1.ModelService"
MODEL_HANDSHAKE = f"/{MODEL_SERVICE}/Handshake"
MODEL_JOIN = f"/{MODEL_SERVICE}/Join"
MODEL_SHUTDOWN = f"/{MODEL_SERVICE}/Shutdown"

# Ours: what the server is doing.
OPS_SERVICE = "rlmesh.ops.v1.OpsService"
INSPECT = f"/{OPS_SERVICE}/Inspect"

HEALTH_SERVICE = "grpc.health.v1.Health"
HEALTH_CHECK = f"/{HEALTH_SERVICE}/Check"
