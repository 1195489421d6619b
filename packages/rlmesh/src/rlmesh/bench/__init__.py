"""The measuring behind `rlmesh bench`."""
