"""rlmesh."""
