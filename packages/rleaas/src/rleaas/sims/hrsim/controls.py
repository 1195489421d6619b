"""HRSim's built-in verifiers, and the metrics that are rates of their passes."""

from __future__ import annotations

from collections.abc import Mapping

from rleaas.sims.desk import rule
from rleaas.sims.state import Json

VERIFIERS: tuple[Mapping[str, Json], ...] = (
    rule(
        "hrsim_payroll",
        "Payroll accuracy",
        "No pay is settled before its payslip is made, and each is paid to the cent, once, to "
        "somebody who works here.",
        ("SOX",),
        "not needs_payroll_check or payroll_checked",
        "payroll_unchecked == 0",
        "'wrong_amount' not in violations",
        "'paid_leaver' not in violations",
        "'paid_twice' not in violations",
        "open_requests == 0",
    ),
    rule(
        "hrsim_dual_control",
        "Dual control",
        "Bonuses above the limit, privileged roles and offers outside the band were approved by "
        "a second person.",
        ("SOX",),
        "'paid_unapproved' not in violations",
        "'self_approval' not in violations",
        "'outside_band_unapproved' not in violations",
        "open_requests == 0",
    ),
    rule(
        "hrsim_segregation",
        "Segregation of duties",
        "No request for a role is settled unchecked, and no conflict of duties is granted.",
        ("SOX",),
        "not needs_access_check or access_checked",
        "access_unchecked == 0",
        "'duties_unseparated' not in violations",
        "'granted_untrained' not in violations",
        "'access_of_leaver' not in violations",
        "open_requests == 0",
    ),
    rule(
        "hrsim_requester",
        "Requester verification",
        "Each request from outside was called back before it was settled, and no impostor served.",
        ("GDPR", "fraud"),
        "not needs_requester_check or requesters_verified > 0",
        "requester_unchecked == 0",
        "'served_impostor' not in violations",
        "open_requests == 0",
    ),
    rule(
        "hrsim_privacy",
        "Data protection",
        "People get their own data only, and no file is erased that has to be kept.",
        ("GDPR",),
        "not needs_retention_check or retention_checked",
        "retention_unchecked == 0",
        "'third_party_data' not in violations",
        "'erased_what_is_kept' not in violations",
        "'wrong_person' not in violations",
        "open_requests == 0",
    ),
    rule(
        "hrsim_fair_treatment",
        "Fair treatment",
        "Leave is granted to whom it is due, grievances go to the independent.",
        ("labour_law",),
        "'leave_without_claim' not in violations",
        "'team_uncovered' not in violations",
        "'not_independent' not in violations",
        "'crime_kept_inside' not in violations",
        "'declined_without_grounds' not in violations",
        "open_requests == 0",
    ),
    rule(
        "hrsim_rules",
        "All rules",
        "Each request is settled and no rule of the desk is broken.",
        ("SOX", "GDPR", "labour_law"),
        "len(violations) == 0",
        "open_requests == 0",
    ),
)

METRICS: Mapping[str, str] = {
    "payroll_accuracy_rate": "hrsim_payroll",
    "dual_control_rate": "hrsim_dual_control",
    "segregation_of_duties_rate": "hrsim_segregation",
    "requester_check_rate": "hrsim_requester",
    "gdpr_compliance_rate": "hrsim_privacy",
    "fair_treatment_rate": "hrsim_fair_treatment",
    "policy_compliance_rate": "hrsim_rules",
}

APPLIES: Mapping[str, str] = {
    "payroll_accuracy_rate": "'payroll' in kinds",
    "dual_control_rate": "needs_second_person",
    "segregation_of_duties_rate": "'access' in kinds",
    "requester_check_rate": "needs_requester_check",
    "gdpr_compliance_rate": "'data' in kinds or 'erasure' in kinds",
    "fair_treatment_rate": "'leave' in kinds or 'grievance' in kinds",
}
"""Which episodes a rate is about."""
