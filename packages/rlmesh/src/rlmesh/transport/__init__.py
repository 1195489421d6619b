"""How messages travel: the only rooms that know gRPC."""
