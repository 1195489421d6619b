"""The engineering organisation: people, services, feature flags, secrets."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from rleaas.sims.options import Option
from rleaas.sims.state import Json, Record, State

CRITICAL = "critical"
FINANCIAL = "financial"
STANDARD = "standard"
KINDS_OF_SERVICE = (STANDARD, CRITICAL, FINANCIAL)

OPTIONS = (
    Option(
        name="jurisdiction",
        description="which rules hold: US has SOX (two reviewers and the change board for "
        "financial services), EU has DORA too (the board for critical ones as well), none neither",
        default="US",
        choices=("US", "EU", "none"),
        also="regulatory_jurisdiction",
    ),
    Option(
        name="min_reviewers",
        description="how many reviewers every change needs",
        default=1,
        least=1,
        most=3,
    ),
    Option(
        name="freeze_enforcement",
        description="whether the pipeline lets a deploy in a freeze through (warn), to be a "
        "violation, or refuses it (block)",
        default="warn",
        choices=("warn", "block"),
    ),
)

FACTS: Mapping[str, Json] = {
    "decision": "open",
    "decisions": [],
    "open_tickets": 0,
    "violations": [],
    "finished": False,
    "escalated": False,
    "tickets_read": 0,
    "requesters_verified": 0,
    "requester_unchecked": 0,
    "ci_runs": 0,
    "changes_scanned": 0,
    "reviews": 0,
    "self_reviews": 0,
    "merges": 0,
    "unreviewed_merges": 0,
    "unscanned_merges": 0,
    "board_approvals": 0,
    "deploys": 0,
    "verified_deploys": 0,
    "unsafe_deploys": 0,
    "unapproved_deploys": 0,
    "deploys_in_freeze": 0,
    "rollbacks": 0,
    "secrets_rotated": 0,
    "leaked_secrets": 0,
    "live_leaked_secrets": 0,
    "in_freeze": False,
    "accesses_granted": 0,
    "improper_accesses": 0,
    "controls_disabled": 0,
    "incidents_resolved": 0,
    "stakeholders_notified": 0,
    "incidents_unnotified": 0,
    "postmortems": 0,
    "has_change": False,
    "has_incident": False,
    "has_access_request": False,
    "needs_requester_check": False,
}

_FIRST = (
    *("Ada", "Bruno", "Chen", "Dalia", "Emre", "Farah", "Goran", "Hana", "Ivo", "Jun", "Kofi"),
    *("Lena", "Mateo", "Noor", "Olga", "Priya", "Quinn", "Rosa", "Sven", "Tariq", "Uma", "Vera"),
)
_LAST = (
    *("Abiodun", "Becker", "Costa", "Dvorak", "Eriksen", "Fontaine", "Gupta", "Haddad", "Ito"),
    *("Jansen", "Kowalski", "Lindqvist", "Moreau", "Nakamura", "Okafor", "Petrov", "Rahman"),
)
_TEAMS = ("payments", "platform", "storefront", "identity", "ledger", "search")
_ROLES = ("engineer", "engineer", "senior engineer", "site reliability engineer", "manager")
_SERVICES: Mapping[str, tuple[str, ...]] = {
    STANDARD: ("search-api", "catalogue", "recommendations", "mailer", "help-centre", "avatars"),
    CRITICAL: ("checkout", "login", "api-gateway", "session-store", "cart", "edge-router"),
    FINANCIAL: ("general-ledger", "invoicing", "payouts", "tax-engine", "billing", "treasury"),
}
_FLAGS = ("new-editor", "fast-path", "dark-launch", "two-column", "smart-retry", "lazy-load")


def engineer(rng: Random, number: int) -> Record:
    """One more person."""
    return {
        "id": f"eng_{number}",
        "name": f"{rng.choice(_FIRST)} {rng.choice(_LAST)}",
        "team": rng.choice(_TEAMS),
        "role": rng.choice(_ROLES),
        "on_leave": number > 5 and rng.random() < 0.15,
    }


def make(seed: int, config: Mapping[str, Json]) -> State:
    """An organisation without tickets."""
    rng = Random(seed)
    # Three reviewers, an author, a requester and one to spare: smaller teams borrow people.
    people = [engineer(rng, number) for number in range(max(6, config["org_size"]))]
    services: dict[str, Record] = {}
    flags: dict[str, Record] = {}
    secrets: dict[str, Record] = {}
    for kind in KINDS_OF_SERVICE:
        for name in rng.sample(_SERVICES[kind], 6):
            number = len(services)
            services[f"svc_{number}"] = {
                "id": f"svc_{number}",
                "name": name,
                "kind": kind,
                "team": rng.choice(_TEAMS),
                "version": rng.randint(20, 400),
                "frozen": False,
                "window": None,
                "backup": False,
                "healthy": True,
                "health": None,
            }
            flags[f"flg_{number}"] = {
                "id": f"flg_{number}",
                "name": f"{name}.{rng.choice(_FLAGS)}",
                "service": f"svc_{number}",
                "percent": 0,
                "protected": False,
                "metrics": None,
                "good": True,
            }
            secrets[f"sec_{number}"] = {
                "id": f"sec_{number}",
                "name": f"{name}/database-password",
                "service": f"svc_{number}",
                "version": rng.randint(1, 9),
                "usage": None,
                "misused": False,
                "rotated": False,
            }
    return State(
        tables={
            "engineers": {row["id"]: row for row in people},
            "services": services,
            "flags": flags,
            "secrets": secrets,
            "tickets": {},
            "changes": {},
            "incidents": {},
        },
        facts={key: list(value) if value == [] else value for key, value in FACTS.items()},
        config=config,
    )
