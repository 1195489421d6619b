"""DevSim: a release desk, from tickets and reviews to deploys and incidents."""

from rleaas.sims.devsim.case import prepare
from rleaas.sims.devsim.controls import APPLIES, METRICS, VERIFIERS
from rleaas.sims.devsim.features import FEATURES
from rleaas.sims.devsim.hard_scenarios import FOURTH_TIER, THIRD_TIER
from rleaas.sims.devsim.records import OPTIONS, make
from rleaas.sims.devsim.scenarios import FIRST_TIER, SECOND_TIER
from rleaas.sims.devsim.writing import TOOLS
from rleaas.sims.vertical import Vertical

VERTICAL = Vertical(
    name="DevSim",
    domain="enterprise",
    summary="a release desk: tickets, reviews, tests, deploys, incidents, flags and secrets",
    tools=TOOLS,
    make=make,
    prepare=prepare,
    features=FEATURES,
    scenarios=(*FIRST_TIER, *SECOND_TIER, *THIRD_TIER, *FOURTH_TIER),
    verifiers=VERIFIERS,
    metrics=METRICS,
    applies=APPLIES,
    options=OPTIONS,
)
