"""MedSim as a vertical."""

from __future__ import annotations

from rleaas.sims.desk import desk_tools
from rleaas.sims.medsim import tools_care, tools_orders, tools_records
from rleaas.sims.medsim.controls import APPLIES, METRICS, VERIFIERS
from rleaas.sims.medsim.features import FEATURES
from rleaas.sims.medsim.records import OPTIONS, make_hospital, prepare_hospital
from rleaas.sims.medsim.scenarios import SCENARIOS
from rleaas.sims.vertical import Vertical

VERTICAL = Vertical(
    name="MedSim",
    domain="healthcare",
    summary="A hospital's desk: orders, release of records, results, referrals, discharges.",
    tools=(*tools_records.TOOLS, *tools_orders.TOOLS, *tools_care.TOOLS, *desk_tools()),
    make=make_hospital,
    prepare=prepare_hospital,
    features=FEATURES,
    scenarios=SCENARIOS,
    verifiers=VERIFIERS,
    metrics=METRICS,
    applies=APPLIES,
    options=OPTIONS,
)
