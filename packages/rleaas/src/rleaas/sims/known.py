"""Episodes whose worth is known: what grader tests are made with.

A scenario's reference is good under every built-in verifier of its vertical. Its bad solution is
bad under the controls that it breaks, and under these only: one that skips the sanctions list may
well have identified the customer. Which of them breaks which control was settled by reading them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rleaas.sims.scenario import Call, Scenario
from rleaas.sims.state import Json
from rleaas.sims.vertical import Vertical
from rleaas.sims.world import World
from rleaas.verify import Trajectory

BROKEN_BY: Mapping[str, tuple[str, ...]] = {
    "finsim_aml_check": (
        "finsim_wire_001",
        "finsim_account_003",
        "finsim_wire_011",
        "finsim_sanctions_032",
        "finsim_queue_051",
    ),
    "finsim_kyc_check": (
        "finsim_kyc_008",
        "finsim_kyc_013",
        "finsim_kyc_015",
        "finsim_sanctions_032",
        "finsim_queue_051",
        "finsim_queue_054",
        "finsim_queue_058",
    ),
    "finsim_sanctions_screening": ("finsim_wire_002", "finsim_sanctions_032", "finsim_queue_051"),
    "finsim_second_officer": (
        "finsim_sox_016",
        "finsim_sanctions_032",
        "finsim_sanctions_038",
        "finsim_queue_055",
    ),
    "finsim_no_tipping_off": ("finsim_aml_035",),
    "finsim_order_of_work": (
        "finsim_wire_001",
        "finsim_account_003",
        "finsim_wire_011",
        "finsim_sanctions_032",
    ),
    "devsim_review_compliance": (
        "devsim_review_001",
        "devsim_release_001",
        "devsim_injection_001",
        "devsim_self_review_001",
        "devsim_monday_001",
    ),
    "devsim_safe_deploy": (
        "devsim_freeze_001",
        "devsim_release_002",
        "devsim_migration_001",
        "devsim_flaky_002",
        "devsim_injection_001",
        "devsim_freeze_002",
        "devsim_train_001",
        "devsim_freeze_004",
        "devsim_audit_001",
    ),
    "devsim_freeze_compliance": ("devsim_freeze_001", "devsim_freeze_002", "devsim_freeze_004"),
    "devsim_sox_change_approval": (
        "devsim_access_001",
        "devsim_release_002",
        "devsim_access_003",
        "devsim_impostor_001",
        "devsim_incident_005",
        "devsim_audit_001",
    ),
    "devsim_secret_hygiene": ("devsim_secret_001", "devsim_secret_003", "devsim_breach_001"),
    "devsim_requester_verified": (
        "devsim_access_001",
        "devsim_secret_002",
        "devsim_impostor_001",
        "devsim_incident_005",
    ),
    "devsim_controls_intact": ("devsim_flag_001", "devsim_vulnerable_001"),
    "devsim_incident_handling": (
        "devsim_incident_001",
        "devsim_incident_002",
        "devsim_incident_003",
        "devsim_storm_001",
    ),
    "devsim_release_order": (
        "devsim_review_001",
        "devsim_release_001",
        "devsim_injection_001",
        "devsim_monday_001",
    ),
    "medsim_consent": (
        "medsim_release_001",
        "medsim_release_002",
        "medsim_release_004",
        "medsim_release_006",
        "medsim_release_007",
        "medsim_release_010",
        "medsim_records_002",
    ),
    "medsim_privacy": (
        "medsim_release_003",
        "medsim_release_005",
        "medsim_release_006",
        "medsim_release_008",
        "medsim_records_001",
    ),
    "medsim_requester": ("medsim_release_003",),
    "medsim_interactions": ("medsim_order_001", "medsim_order_006", "medsim_order_007"),
    "medsim_safe_orders": (
        "medsim_order_002",
        "medsim_order_003",
        "medsim_order_004",
        "medsim_order_005",
        "medsim_order_006",
        "medsim_order_007",
        "medsim_order_010",
        "medsim_round_001",
        "medsim_round_002",
    ),
    "medsim_critical_results": (
        "medsim_result_001",
        "medsim_result_002",
        "medsim_discharge_001",
        "medsim_discharge_002",
        "medsim_discharge_003",
        "medsim_result_003",
        "medsim_ward_001",
    ),
    "medsim_rules": (
        "medsim_discharge_001",
        "medsim_discharge_002",
        "medsim_discharge_003",
        "medsim_order_001",
        "medsim_order_002",
        "medsim_order_003",
        "medsim_order_004",
        "medsim_order_005",
        "medsim_order_006",
        "medsim_order_007",
        "medsim_order_010",
        "medsim_records_001",
        "medsim_records_002",
        "medsim_release_001",
        "medsim_release_002",
        "medsim_release_003",
        "medsim_release_004",
        "medsim_release_005",
        "medsim_release_006",
        "medsim_release_007",
        "medsim_release_008",
        "medsim_release_010",
        "medsim_result_001",
        "medsim_result_002",
        "medsim_result_003",
        "medsim_round_001",
        "medsim_round_002",
        "medsim_ward_001",
    ),
    "hrsim_payroll": (
        "hrsim_payroll_001",
        "hrsim_payroll_002",
        "hrsim_payroll_004",
        "hrsim_payroll_005",
        "hrsim_payroll_006",
    ),
    "hrsim_dual_control": (
        "hrsim_payroll_003",
        "hrsim_access_002",
        "hrsim_offer_002",
        "hrsim_payrun_001",
        "hrsim_payrun_002",
        "hrsim_hiring_001",
    ),
    "hrsim_segregation": (
        "hrsim_access_001",
        "hrsim_access_003",
        "hrsim_access_005",
        "hrsim_access_review_001",
    ),
    "hrsim_requester": (
        "hrsim_bank_001",
        "hrsim_bank_002",
        "hrsim_bank_003",
        "hrsim_access_004",
        "hrsim_data_002",
        "hrsim_privacy_001",
        "hrsim_day_001",
    ),
    "hrsim_privacy": (
        "hrsim_erasure_001",
        "hrsim_data_001",
        "hrsim_erasure_002",
        "hrsim_leave_005",
        "hrsim_erasure_003",
    ),
    "hrsim_fair_treatment": (
        "hrsim_leave_002",
        "hrsim_grievance_001",
        "hrsim_leaver_002",
        "hrsim_leave_003",
        "hrsim_leave_004",
        "hrsim_grievance_002",
        "hrsim_grievance_003",
        "hrsim_grievance_004",
        "hrsim_leave_006",
        "hrsim_access_review_002",
    ),
}
"""The scenarios whose bad solution breaks a built-in verifier; one that is not listed: all."""

ONLY_FORBIDS = frozenset({"devsim_release_order"})
"""Built-in verifiers that an episode in which nothing happened passes, as it should."""


@dataclass(frozen=True, slots=True)
class KnownEpisodes:
    """Good and bad episodes, played; `allow_empty` says that doing nothing is good as well."""

    good: tuple[Trajectory, ...]
    bad: tuple[Trajectory, ...]
    allow_empty: bool = False


def known_episodes(
    vertical: Vertical,
    verifier_id: str = "",
    *,
    config: Mapping[str, Json] | None = None,
    scenario_ids: Sequence[str] | None = None,
    seeds: Sequence[int] = (0,),
) -> KnownEpisodes:
    """Play the references and the bad solutions of a vertical's scenarios.

    Args:
        vertical: the vertical.
        verifier_id: of a built-in verifier, only the bad solutions that break it count as bad.
        config: what its world is configured with.
        scenario_ids: only these scenarios.
        seeds: with each of these.
    """
    world = World(vertical, config)
    chosen = [one for one in vertical.scenarios if scenario_ids is None or one.id in scenario_ids]
    broken = BROKEN_BY.get(verifier_id)
    bad = chosen if broken is None else [one for one in chosen if one.id in broken]
    return KnownEpisodes(
        tuple(_played(world, one, one.reference, seed) for one in chosen for seed in seeds),
        tuple(_played(world, one, one.bad, seed) for one in bad for seed in seeds),
        verifier_id in ONLY_FORBIDS,
    )


def _played(world: World, scenario: Scenario, calls: Sequence[Call], seed: int) -> Trajectory:
    world.reset(seed, scenario)
    world.play(calls)
    return world.trajectory()
