"""rlcore."""
