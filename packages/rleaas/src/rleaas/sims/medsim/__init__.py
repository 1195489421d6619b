"""MedSim: a hospital's desk of orders, records, referrals and discharges."""

from rleaas.sims.medsim.vertical import VERTICAL

__all__ = ["VERTICAL"]
