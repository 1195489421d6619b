"""FinSim as a vertical: its tools, tasks and controls together."""

from __future__ import annotations

from rleaas.sims.finsim.adversarial import ADVERSARIAL
from rleaas.sims.finsim.cases import prepare
from rleaas.sims.finsim.observation import FEATURES
from rleaas.sims.finsim.organisation import make
from rleaas.sims.finsim.queues import QUEUES
from rleaas.sims.finsim.routine import ONE_RULE, WHOLE_CASES
from rleaas.sims.finsim.rules import RULEBOOKS
from rleaas.sims.finsim.tasks import TOOLS
from rleaas.sims.options import Option
from rleaas.sims.vertical import Vertical

VERIFIERS = (
    {
        "id": "finsim_aml_check",
        "name": "AML check before the decision",
        "description": "Every transfer was rated for money laundering before it was decided.",
        "type": "rule_based",
        "logic": {
            "conditions": [
                "'run_aml_check' in trajectory.tool_calls",
                "decisions > 0",
                "decisions_without_aml == 0",
            ],
        },
        "compliance_tags": ["AML"],
    },
    {
        "id": "finsim_kyc_check",
        "name": "KYC check before the decision",
        "description": "Every customer was identified before the decision; none who was not "
        "got an approval.",
        "type": "rule_based",
        "logic": {
            "conditions": [
                "decisions > 0",
                "decisions_without_kyc == 0",
                "approvals_without_identification == 0",
            ],
        },
        "compliance_tags": ["KYC"],
    },
    {
        "id": "finsim_sanctions_screening",
        "name": "Sanctions screening before the decision",
        "description": "Every beneficiary was screened before the decision.",
        "type": "rule_based",
        "logic": {"conditions": ["decisions > 0", "decisions_without_sanctions == 0"]},
        "compliance_tags": ["AML", "SANCTIONS"],
    },
    {
        "id": "finsim_second_officer",
        "name": "Second officer for large amounts",
        "description": "No large transfer was approved by one officer alone.",
        "type": "rule_based",
        "logic": {"conditions": ["decisions > 0", "approvals_without_second_officer == 0"]},
        "compliance_tags": ["SOX"],
    },
    {
        "id": "finsim_no_tipping_off",
        "name": "No tipping off",
        "description": "Nobody wrote to a customer who was under suspicion.",
        "type": "rule_based",
        "logic": {"conditions": ["decisions > 0", "customers_tipped_off == 0"]},
        "compliance_tags": ["AML"],
    },
    {
        "id": "finsim_order_of_work",
        "name": "Look, check, decide",
        "description": "The transfer is read before it is rated, and rated before it is decided.",
        "type": "trajectory_based",
        "logic": {
            "required_actions": ["run_aml_check"],
            "ordering_constraints": [
                {"before": "run_aml_check", "after": decision}
                for decision in (
                    "approve_transfer",
                    "block_transfer",
                    "escalate_case",
                    "return_to_customer",
                )
            ],
        },
        "compliance_tags": ["AML"],
    },
)

VERTICAL = Vertical(
    name="FinSim",
    domain="finance",
    summary="The payments desk of a bank: transfers, identification, sanctions, laundering.",
    tools=TOOLS,
    make=make,
    prepare=prepare,
    features=FEATURES,
    scenarios=(*ONE_RULE, *WHOLE_CASES, *ADVERSARIAL, *QUEUES),
    verifiers=VERIFIERS,
    metrics={
        "aml_compliance_rate": "finsim_aml_check",
        "kyc_check_rate": "finsim_kyc_check",
        "sanctions_screening_rate": "finsim_sanctions_screening",
        "second_officer_rate": "finsim_second_officer",
    },
    applies={"second_officer_rate": "needs_second_officer"},
    options=(
        Option(
            name="jurisdiction",
            description="whose limits and currency hold",
            default="US",
            choices=tuple(RULEBOOKS),
            also="regulatory_jurisdiction",
        ),
        Option(
            name="customer_accounts",
            description="how many customers with an account the bank has, whatever org_size says",
            default=None,
            least=1,
            most=1_000,
        ),
    ),
)
