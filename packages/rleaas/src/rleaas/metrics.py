"""Figures, under the published path of the module."""

from rleaas.resources.metrics import MetricsClient

__all__ = ["MetricsClient"]
