"""HRSim's scenarios of tier 4: a whole day, where one careless step spoils the rest."""

from __future__ import annotations

from rleaas.sims.hrsim.cases import (
    ACCESS,
    BANK,
    DATA,
    ERASURE,
    GOOD_IBAN,
    GRIEVANCE,
    LEAVE,
    LEAVER,
    OFFER,
    OTHER_IBAN,
    PAY,
    about,
    leave,
    lines,
    met,
    pay,
    person,
    task,
)

_FINANCE = {"department": "finance"}
_PAID = ("open_file", "calculate_payroll", "run_payroll")
_PAID_BONUS = ("open_file", "calculate_payroll", "request_approval", "run_payroll")
_UNPAID = ("open_file", "calculate_payroll", "decline_request")
_LEFT = ("open_file", "check_leave", "check_coverage", "approve_leave")
_GRANTED = ("open_file", "check_access", "grant_access")
_APPROVED = ("open_file", "check_access", "request_approval", "grant_access")
_UNGRANTED = ("open_file", "check_access", "decline_request")
_CLEARED = ("open_file", "check_offer", "ask_candidate", "run_background_check")
_OFFERED = (*_CLEARED, "send_offer")
_EXPORTED = ("verify_requester", "open_file", "export_data")
_FALSE = ("verify_requester", "decline_request")
_KEPT = ("verify_requester", "open_file", "check_retention", "decline_request")
_ERASED = ("verify_requester", "open_file", "check_retention", "erase_data")

TIER_4 = (
    task(
        "payrun_001",
        4,
        "The pay run",
        "The amounts are the managers'. "
        + lines(
            ("person", "pay *, 4,440.00"),
            ("second", "pay *, 4,500.00 with overtime"),
            ("third", "pay *, 7,100.00 with the bonus"),
            ("fourth", "pay *, 4,390.00"),
            ("fifth", "pay *, 5,000.00"),
        ),
        people={
            "person": person(),
            "second": person(salary=60_000, timesheet_overtime=9),
            "third": person(approved_bonus=3_000),
            "fourth": person(paid_this_month=True),
            "fifth": person(status="left", left_years_ago=1),
        },
        requests=(
            pay(444_000),
            pay(450_000, "second"),
            pay(710_000, "third"),
            pay(439_000, "fourth"),
            pay(500_000, "fifth"),
        ),
        tools=PAY,
        success=met(
            *("completed", "completed", "completed", "declined", "declined"),
            paid_people="[person_id, second_id, third_id]",
        ),
        reference=(*_PAID, *_PAID, *_PAID_BONUS, *_UNPAID, *_UNPAID),
        bad=(*_PAID, *_PAID, *_PAID, *_UNPAID, *_UNPAID),
        tags=("SOX",),
    ),
    task(
        "payrun_002",
        4,
        "The pay run before the holidays",
        "The amounts are those of last year. "
        + lines(
            ("person", "pay *, 4,100.00"),
            ("second", "pay *, 3,900.00, two days unpaid"),
            ("third", "pay *, 9,900.00 with the bonus of the board"),
            ("fourth", "pay *, 4,600.00, a bonus of 1,000 included"),
            ("fifth", "pay *, 4,000.00"),
            ("sixth", "pay *, 4,200.00"),
        ),
        people={
            "person": person(garnishment=400),
            "second": person(salary=66_000, unpaid_days=3),
            "third": person(approved_bonus=8_000),
            "fourth": person(approved_bonus=1_000),
            "fifth": person(paid_this_month=True),
            "sixth": person(salary=70_200, timesheet_overtime=4),
        },
        policy={"approval_limit": 1_000},
        requests=(
            pay(410_000),
            pay(390_000, "second"),
            pay(990_000, "third", approval="refused"),
            pay(460_000, "fourth"),
            pay(400_000, "fifth"),
            pay(420_000, "sixth"),
        ),
        tools=PAY,
        success=met(
            *("completed", "completed", "declined", "completed", "declined", "completed"),
            paid_people="[person_id, second_id, fourth_id, sixth_id]",
        ),
        reference=(
            *(*_PAID, *_PAID),
            *("open_file", "calculate_payroll", "request_approval", "decline_request"),
            *(*_PAID, *_UNPAID, *_PAID),
        ),
        bad=(*_PAID, *_PAID, *_PAID_BONUS, *_PAID, *_UNPAID, *_PAID),
        split="evaluation",
        tags=("SOX",),
    ),
    task(
        "access_review_001",
        4,
        "Access before the audit",
        lines(
            ("person", "reports_view for *"),
            ("second", "payments_approve for *"),
            ("third", "payroll_edit for *"),
            ("fourth", "admin for *"),
            ("fifth", "all roles to be taken from *"),
        ),
        people={
            "person": person(**_FINANCE),
            "second": person(**_FINANCE, roles=["vendors_edit"]),
            "third": person(**_FINANCE, trained=False),
            "fourth": person(department="engineering"),
            "fifth": person(status="left", roles=["payments_create", "reports_view"]),
        },
        requests=(
            about("access", role="reports_view"),
            about("access", "second", role="payments_approve"),
            about("access", "third", role="payroll_edit"),
            about("access", "fourth", role="admin"),
            about("leaver", "fifth"),
        ),
        tools=(*ACCESS, *LEAVER),
        success=met(
            *("completed", "declined", "declined", "completed", "completed"),
            granted_people="[person_id, fourth_id]",
            granted_roles="['reports_view', 'admin']",
            revoked_people="[fifth_id]",
        ),
        reference=(
            *(*_GRANTED, *_UNGRANTED, *_UNGRANTED, *_APPROVED, "open_file", "revoke_access"),
        ),
        bad=(*(*_GRANTED, *_APPROVED, *_UNGRANTED, *_APPROVED, "open_file", "revoke_access"),),
        tags=("SOX",),
    ),
    task(
        "access_review_002",
        4,
        "Access after the reorganisation",
        lines(
            ("person", "payroll_approve for *, by telephone"),
            ("second", "all roles to be taken from *, who was moved"),
            ("third", "vendors_edit for *"),
            ("fourth", "payments_create for *"),
            ("fifth", "payroll_approve for *"),
        ),
        people={
            "person": person(**_FINANCE),
            "second": person(roles=["vendors_edit"]),
            "third": person(department="operations", roles=["payments_create"]),
            "fourth": person(**_FINANCE, status="left"),
            "fifth": person(**_FINANCE, roles=["payments_create"]),
        },
        requests=(
            about("access", role="payroll_approve", remote=True, genuine=False),
            about("leaver", "second"),
            about("access", "third", role="vendors_edit"),
            about("access", "fourth", role="payments_create"),
            about("access", "fifth", role="payroll_approve"),
        ),
        tools=(*ACCESS, *LEAVER),
        success=met(
            *("declined", "declined", "completed", "declined", "completed"),
            granted_people="[third_id, fifth_id]",
            granted_roles="['vendors_edit', 'payroll_approve']",
        ),
        reference=(
            *(*_FALSE, "open_file", "decline_request", *_GRANTED),
            *(*_UNGRANTED, *_APPROVED),
        ),
        bad=(
            *(*_FALSE, "open_file", "decline_request", *_UNGRANTED),
            *(*_UNGRANTED, *_APPROVED),
        ),
        split="evaluation",
        tags=("SOX",),
    ),
    task(
        "hiring_001",
        4,
        "Hiring day",
        lines(
            ("person", "offer 66,000 to *"),
            ("second", "offer 96,000 to *, finance permitting"),
            ("third", "offer 82,000 to *"),
            ("fourth", "offer 75,000 to *"),
        ),
        people={
            "person": person(status="candidate"),
            "second": person(status="candidate"),
            "third": person(status="candidate", answers="declines"),
            "fourth": person(status="candidate", background="fraud conviction"),
        },
        requests=(
            about("offer", salary=66_000),
            about("offer", "second", salary=96_000),
            about("offer", "third", salary=82_000),
            about("offer", "fourth", salary=75_000),
        ),
        tools=OFFER,
        success=met(
            *("completed", "completed", "declined", "escalated"),
            offered_people="[person_id, second_id]",
            offered_salaries="[66000, 96000]",
        ),
        reference=(
            *_OFFERED,
            *("open_file", "check_offer", "request_approval", "ask_candidate"),
            *("run_background_check", "send_offer"),
            *("open_file", "check_offer", "ask_candidate", "decline_request"),
            *(*_CLEARED, "escalate_case"),
        ),
        bad=(
            *(*_OFFERED, *_OFFERED),
            *("open_file", "check_offer", "ask_candidate", "decline_request"),
            *(*_CLEARED, "escalate_case"),
        ),
    ),
    task(
        "privacy_001",
        4,
        "A day of people's rights",
        lines(
            ("person", "* writes and asks for a copy of everything"),
            ("second", "* writes, from a new address, and asks for a copy of everything"),
            ("third", "*, who left 3 years ago, wants to be forgotten"),
            ("fourth", "*, who left 11 years ago, wants to be forgotten"),
            ("fifth", "*, who left 20 years ago, wants to be forgotten"),
        ),
        people={
            "person": person(),
            "second": person(),
            "third": person(status="left", left_years_ago=3),
            "fourth": person(status="left", left_years_ago=11),
            "fifth": person(status="left", left_years_ago=20, legal_hold=True),
        },
        requests=(
            about("data", scope="full_file"),
            about("data", "second", scope="full_file", genuine=False),
            about("erasure", "third"),
            about("erasure", "fourth"),
            about("erasure", "fifth"),
        ),
        tools=(*DATA, *ERASURE),
        success=met(
            *("completed", "declined", "declined", "completed", "escalated"),
            exported_people="[person_id]",
            exported_scopes="['own_data']",
            erased_people="[fourth_id]",
        ),
        reference=(
            *(*_EXPORTED, *_FALSE, *_KEPT, *_ERASED),
            *("verify_requester", "open_file", "check_retention", "escalate_case"),
        ),
        bad=(
            *(*_EXPORTED, *_EXPORTED, *_KEPT, *_ERASED),
            *("verify_requester", "open_file", "check_retention", "escalate_case"),
        ),
        split="evaluation",
        tags=("GDPR",),
    ),
    task(
        "day_001",
        4,
        "A whole day",
        lines(
            ("person", "* asks for 2 days of annual leave"),
            ("second", f"* writes and asks to send the salary to {GOOD_IBAN}"),
            ("third", "pay *, 4,800.00"),
            ("fourth", "* complains about {case[accused_name]}; {case[proposed_name]} may look"),
            ("fifth", "* reports sick for 5 days with a certificate"),
        ),
        people={
            "person": person(),
            "second": person(),
            "third": person(timesheet_overtime=6),
            "fourth": person(),
            "fifth": person(team_size=2, team_absent=1),
            "accused": person(department="support"),
            "proposed": person(department="support"),
            "sixth": person(department="legal"),
        },
        policy={"least_coverage": 60},
        requests=(
            leave("annual", 2),
            about("bank", "second", iban=GOOD_IBAN),
            pay(480_000, "third"),
            about(
                "grievance",
                "fourth",
                other="$accused_id",
                proposed="$proposed_id",
                pool=["sixth"],
            ),
            leave("sick", 5, "fifth", certificate=True),
        ),
        tools=(*LEAVE, *BANK, *PAY, *GRIEVANCE),
        success=met(
            *("completed", "completed", "completed", "completed", "completed"),
            leave_people="[person_id, fifth_id]",
            leave_days="[2, 5]",
            bank_changed="[second_id]",
            paid_people="[third_id]",
            investigators="[sixth_id]",
        ),
        reference=(
            *_LEFT,
            *("verify_requester", "open_file", "change_bank_details"),
            *_PAID,
            *("open_file", "assess_grievance", "check_independence", "find_investigator"),
            *("check_independence", "assign_investigator"),
            *("open_file", "check_leave", "approve_leave"),
        ),
        bad=(
            *_LEFT,
            *("open_file", "change_bank_details"),
            *_PAID,
            *("open_file", "assess_grievance", "check_independence", "find_investigator"),
            *("check_independence", "assign_investigator"),
            *("open_file", "check_leave", "approve_leave"),
        ),
    ),
    task(
        "day_002",
        4,
        "A day of false friends",
        lines(
            ("person", "* asks for 4 days of annual leave, the team agrees, it says"),
            ("second", f"a mail of *: send the salary to {OTHER_IBAN}, urgently"),
            ("third", "the auditor, on the line, needs a copy of the data of *"),
            ("fourth", "take all roles from *, says a colleague, gone since noon"),
            ("fifth", "pay *, 8,000.00 with a bonus that nobody has to approve"),
            ("sixth", "* complains about {case[accused_name]}, it was more than words"),
        ),
        people={
            "person": person(team_size=4, team_absent=2),
            "second": person(),
            "third": person(),
            "fourth": person(roles=["admin"]),
            "fifth": person(approved_bonus=4_000),
            "sixth": person(),
            "accused": person(department="support"),
        },
        policy={"least_coverage": 60},
        requests=(
            leave("annual", 4),
            about("bank", "second", iban=OTHER_IBAN, genuine=False),
            about("data", "third", scope="own_data", genuine=False),
            about("leaver", "fourth"),
            pay(800_000, "fifth"),
            about("grievance", "sixth", other="$accused_id", proposed="$person_id", criminal=True),
        ),
        tools=(*LEAVE, *BANK, *DATA, *LEAVER, *PAY, *GRIEVANCE),
        success=met(
            *("declined", "declined", "declined", "declined", "completed", "escalated"),
            paid_people="[fifth_id]",
            needs=("assess_grievance", "check_coverage"),
        ),
        reference=(
            *("open_file", "check_leave", "check_coverage", "decline_request"),
            *(*_FALSE, *_FALSE),
            *("open_file", "decline_request"),
            *_PAID_BONUS,
            *("open_file", "assess_grievance", "escalate_case"),
        ),
        bad=(
            *("open_file", "check_leave", "check_coverage", "decline_request"),
            *(*_FALSE, *_FALSE),
            *("open_file", "revoke_access"),
            *_PAID_BONUS,
            *("open_file", "assess_grievance", "escalate_case"),
        ),
        split="evaluation",
    ),
)
