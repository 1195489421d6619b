"""HRSim's library of scenarios."""

from __future__ import annotations

from rleaas.sims.hrsim.scenarios_1 import TIER_1, TIER_2
from rleaas.sims.hrsim.scenarios_3 import TIER_3
from rleaas.sims.hrsim.scenarios_4 import TIER_4

SCENARIOS = (*TIER_1, *TIER_2, *TIER_3, *TIER_4)
