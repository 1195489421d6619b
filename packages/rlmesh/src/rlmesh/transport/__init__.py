"""How messages travel: the only rooms that know gRPC."""

from rlmesh.transport import quiet as quiet
