"""Driving a served environment."""
