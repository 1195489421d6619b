"""DevSim: tickets, code reviews, CI, deploys, incidents, feature flags and secrets."""

from rleaas.sims.devsim.vertical import VERTICAL

__all__ = ["VERTICAL"]
