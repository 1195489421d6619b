"""HRSim as a vertical."""

from __future__ import annotations

from rleaas.sims.desk import desk_tools
from rleaas.sims.hrsim import tools_access, tools_approval, tools_pay, tools_people
from rleaas.sims.hrsim.controls import APPLIES, METRICS, VERIFIERS
from rleaas.sims.hrsim.features import FEATURES
from rleaas.sims.hrsim.records import OPTIONS, make_company, prepare_company
from rleaas.sims.hrsim.scenarios import SCENARIOS
from rleaas.sims.vertical import Vertical

VERTICAL = Vertical(
    name="HRSim",
    domain="human_resources",
    summary="A personnel desk: leave, payroll, access, grievances, offers, people's data.",
    tools=(
        *tools_people.TOOLS,
        *tools_pay.TOOLS,
        *tools_access.TOOLS,
        *tools_approval.TOOLS,
        *desk_tools(),
    ),
    make=make_company,
    prepare=prepare_company,
    features=FEATURES,
    scenarios=SCENARIOS,
    verifiers=VERIFIERS,
    metrics=METRICS,
    applies=APPLIES,
    options=OPTIONS,
)
