"""HRSim: a company's personnel desk of leave, pay, access, grievances and offers."""

from rleaas.sims.hrsim.vertical import VERTICAL

__all__ = ["VERTICAL"]
