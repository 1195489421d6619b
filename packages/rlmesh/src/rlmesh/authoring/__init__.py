"""Environments that people write: what makes them, with which parameters, and what they are."""
