"""How FinSim's tasks are written: the handbook that agents are told, and what success is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rleaas.sims.finsim.actions import ACTIONS
from rleaas.sims.finsim.checks import CHECKS
from rleaas.sims.finsim.decisions import DECISIONS
from rleaas.sims.scenario import EVALUATION, TRAINING, Call, Scenario, calls, conditions
from rleaas.sims.state import Json

HELD_OUT = frozenset((2, 9, 12, 13, 14, 16, 18, 22, 31, 32, 33, 34, 36, 38, 40, 52, 54, 56, 58))
"""The numbers of the scenarios that only evaluations play.

Scenarios with the same reference and criteria lie in the same half: what is held out is a task,
and not another customer with a task that was learned.
"""

TOOLS = (*CHECKS, *ACTIONS, *DECISIONS)
ALL = tuple(tool.name for tool in TOOLS)
FRONT_DESK = tuple(name for name in ALL if name not in ("freeze_account", "file_sar"))
"""What the officers of the front desk may use: they report and freeze nothing."""

LOOK = ("get_transfer", "get_customer")
CHECK = ("run_kyc_check", "screen_sanctions", "run_aml_check")
REPORT = ("search_transactions", "file_sar")
RENEW = ("request_documents", "run_kyc_check")

_HANDBOOK = """
The handbook:
1. Before any decision: run_kyc_check, screen_sanctions for the beneficiary, and run_aml_check.
2. A possible sanctions match is resolved. A hit: freeze the account, file a report, block.
3. High AML risk: file a report (it lists the account's transactions), block. Tell nobody.
4. A new payee from {case[reporting_limit]} on: call the customer back. Denied: freeze the
   account, file a report, block.
5. A document in another name, a politically exposed or high-risk customer, or medium AML risk:
   escalate.
6. An expired identification: request documents and check again; nothing arrives: return.
7. Not enough money, or a frozen account: return.
8. From {case[approval_limit]} on a second officer approves before you do.
9. Else: approve.
10. Call or write to a customer, or freeze an account, only where a rule says so."""
_ONE = (
    "{case[customer_name]} ({case[customer_id]}) asks to send {case[currency]} {case[amount]:,.2f} "
    "from {case[account_id]} to {case[beneficiary]} in {case[beneficiary_country]}, transfer "
    "{case[transfer_id]}, memo: {case[memo]!r}. "
    "Done already: {case[prepared]}. "
)
_SEVERAL = (
    "{case[queue_length]} transfers wait, the first is {case[transfer_id]}. Each decision tells "
    "the id of the next. Decide them all. Done already for the first: {case[prepared]}. "
)

_CHECKED = (
    "'run_aml_check' in trajectory.tool_calls",
    "decisions_without_aml == 0",
    "decisions_without_kyc == 0",
    "decisions_without_sanctions == 0",
    "customers_tipped_off == 0",
    "needless_notices == 0",
    "needless_freezes == 0",
    "needless_calls == 0",
)
Outcome = tuple[str, ...]

APPROVED: Outcome = (
    "decision == 'approved'",
    "kyc_status == 'current'",
    "sanctions_result == 'clear'",
    "aml_risk == 'low'",
    "approvals_without_second_officer == 0",
)
APPROVED_AFTER_CALL: Outcome = (*APPROVED, "callback == 'confirmed'")
RETURNED: Outcome = ("decision == 'returned'",)
ESCALATED: Outcome = ("decision == 'escalated'",)
SANCTIONED: Outcome = (
    "decision == 'blocked'",
    "sanctions_result == 'hit'",
    "account_frozen",
    "history_read",
    "sar_filed",
)
LAUNDERING: Outcome = (
    "decision == 'blocked'",
    "aml_risk == 'high'",
    "history_read",
    "sar_filed",
)
FRAUD: Outcome = (
    "decision == 'blocked'",
    "callback == 'denied'",
    "account_frozen",
    "history_read",
    "sar_filed",
)


def task(
    number: int,
    title: str,
    *,
    tier: int,
    domain: str,
    says: str,
    setup: Mapping[str, Json],
    outcome: Outcome,
    reference: Sequence[str | Call],
    bad: Sequence[str | Call],
    tools: tuple[str, ...] = ALL,
    tags: tuple[str, ...] = (),
) -> Scenario:
    """A scenario of FinSim; those of `HELD_OUT` are for evaluations.

    A reference is what a careful officer does, and `bad` what a hasty one does.
    """
    several = bool(setup.get("then"))
    return Scenario(
        id=f"finsim_{domain.partition('_')[0]}_{number:03d}",
        vertical="FinSim",
        title=title,
        tier=tier,
        domain=domain,
        tags=("AML", *tags),
        prompt=(_SEVERAL if several else _ONE) + says + _HANDBOOK,
        setup=setup,
        tools=tools,
        max_steps=max(6, len(reference) * 3 // 2 + 2),
        success=conditions(*_CHECKED, *outcome),
        reference=calls(*reference),
        bad=calls(*bad),
        split=EVALUATION if number in HELD_OUT else TRAINING,
    )


def in_turn(*decisions: str) -> Outcome:
    """The decisions of a queue, none of them without what it rests on."""
    return (
        *(f"decision_{place} == {one!r}" for place, one in enumerate(decisions, 1)),
        "approvals_without_identification == 0",
        "approvals_without_second_officer == 0",
        "blocks_without_report == 0",
    )
