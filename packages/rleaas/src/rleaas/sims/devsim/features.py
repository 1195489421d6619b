"""What the vector observation tells: what the agent found out about the ticket in focus."""

from __future__ import annotations

from collections.abc import Callable

from rleaas.sims.devsim.case import (
    DENIED_BY_BOARD,
    FAILED,
    GRANTED_BY_BOARD,
    KNOWN_FLAKE,
    OPEN,
    PASSED,
    REAL_FAILURE,
    RETRIED,
    focus,
    linked,
    needs_board,
    reviewers_needed,
)
from rleaas.sims.devsim.incident_tools import waits_urgently
from rleaas.sims.devsim.records import STANDARD
from rleaas.sims.state import Json, Record, State
from rleaas.sims.vertical import Feature

KINDS = ("change", "incident", "access", "secret", "flag")


def _of_ticket(name: str, holds: Callable[[Record], Json]) -> Feature:
    return Feature(name, lambda state: float(bool(holds(focus(state)))))


def _of_service(name: str, holds: Callable[[Record], Json]) -> Feature:
    return Feature(
        name, lambda state: float(bool(holds(state.tables["services"][focus(state)["service"]])))
    )


def _linked(what: str, name: str, holds: Callable[[Record], Json]) -> Feature:
    def read(state: State) -> float:
        row = linked(state, what)
        return 0.0 if row is None else float(bool(holds(row)))

    return Feature(f"{what}.{name}", read)


def _is(key: str, value: Json) -> Callable[[Record], Json]:
    return lambda row: row[key] == value


def _approved(state: State) -> float:
    change = linked(state, "change")
    if change is None:
        return 0.0
    needed = reviewers_needed(state, state.tables["services"][change["service"]])
    return min(1.0, len(change["approvals"]) / needed)


def _waits_for_board(state: State) -> float:
    change = linked(state, "change")
    if change is None or change["board"] is not None:
        return 0.0
    return float(needs_board(state, state.tables["services"][change["service"]]))


def _secret(state: State) -> Record:
    ticket = focus(state)
    twin = f"sec_{ticket['service'].removeprefix('svc_')}"
    return state.tables["secrets"][ticket["secret"] or twin]


def _owes_postmortem(state: State) -> float:
    return float(
        any(
            one["resolved"] and one["severity"] == 1 and not one["postmortem"]
            for one in state.tables["incidents"].values()
        )
    )


def _breach(state: State) -> float:
    return float(any(one["usage"] == "misused" for one in state.tables["secrets"].values()))


def _flag_percent(state: State) -> float:
    flag = linked(state, "flag")
    return 0.0 if flag is None else float(flag["percent"]) / 100


def _left(state: State) -> float:
    return float(state.facts["open_tickets"]) / len(state.case["tickets"])


FEATURES = (
    *(_of_ticket(f"is_{kind}", _is("kind", kind)) for kind in KINDS),
    _of_ticket("open", _is("status", OPEN)),
    _of_ticket("read", lambda row: row["read"]),
    _of_ticket("from_outside", lambda row: row["outside"]),
    _of_ticket("requester_genuine", _is("requester_check", True)),
    _of_ticket("requester_impostor", _is("requester_check", False)),
    _of_ticket("entitlements_fine", lambda row: row.get("entitlements") == "fine"),
    _of_ticket("entitlements_conflict", lambda row: row.get("entitlements") == "conflict"),
    Feature("urgent", lambda state: float(waits_urgently(state))),
    _of_service("guarded_service", lambda row: row["kind"] != STANDARD),
    _of_service("window_open", _is("window", "open")),
    _of_service("window_frozen", _is("window", "frozen")),
    _of_service("backed_up", lambda row: row["backup"]),
    _of_service("seen_healthy", _is("health", True)),
    _of_service("seen_unhealthy", _is("health", False)),
    _linked("change", "open", _is("status", OPEN)),
    _linked("change", "merged", _is("status", "merged")),
    _linked("change", "diff_read", lambda row: row["diff_read"]),
    _linked("change", "migrates", lambda row: row["diff_read"] and row["migrates"]),
    _linked("change", "ci_passed", _is("ci", PASSED)),
    _linked("change", "ci_failed", _is("ci", FAILED)),
    _linked("change", "ci_retried", _is("ci", RETRIED)),
    _linked("change", "known_flake", _is("flake", KNOWN_FLAKE)),
    _linked("change", "real_failure", _is("flake", REAL_FAILURE)),
    _linked("change", "scan_clean", _is("scan", "clean")),
    _linked("change", "scan_secret", _is("scan", "secret")),
    _linked("change", "scan_vulnerable", _is("scan", "vulnerable")),
    Feature("change.approved", _approved),
    Feature("change.waits_for_board", _waits_for_board),
    _linked("change", "board_granted", _is("board", GRANTED_BY_BOARD)),
    _linked("change", "board_denied", _is("board", DENIED_BY_BOARD)),
    _linked("change", "deployed", lambda row: row["deployed"] is not None),
    _linked("change", "seen_unhealthy", _is("verified", False)),
    _linked("flag", "metrics_good", _is("metrics", "good")),
    _linked("flag", "metrics_bad", _is("metrics", "bad")),
    _linked("flag", "is_control", lambda row: row["metrics"] is not None and row["protected"]),
    Feature("flag.percent", _flag_percent),
    Feature("secret.usage_known", lambda state: float(_secret(state)["usage"] is not None)),
    Feature("secret.rotated", lambda state: float(_secret(state)["rotated"])),
    Feature("breach", _breach),
    _linked("incident", "acknowledged", lambda row: row["acknowledged"]),
    *(
        _linked("incident", f"cause_{cause}", _is("known_cause", cause))
        for cause in ("deploy", "flag", "resources", "secret")
    ),
    _linked("incident", "mitigated", lambda row: row["mitigated"] and row["known_cause"]),
    _linked("incident", "notified", lambda row: row["notified"]),
    Feature("owes_postmortem", _owes_postmortem),
    Feature("tickets_left", _left),
)
