"""Commands behind other programs; see `rlmesh.cli` for those of people."""
