"""Serving an environment."""
