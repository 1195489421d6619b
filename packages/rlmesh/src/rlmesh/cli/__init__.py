"""The `rlmesh` command."""
