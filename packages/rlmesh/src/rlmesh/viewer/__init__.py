"""Watching a run while it goes on: in the terminal, and in a browser."""
