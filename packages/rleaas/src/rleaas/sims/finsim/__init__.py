"""FinSim: the payments desk of a bank, its customers, its lists and its controls."""

from rleaas.sims.finsim.vertical import VERTICAL

__all__ = ["VERTICAL"]
