"""What the vector observation tells of the request in focus: what is known, never what is not."""

from __future__ import annotations

from collections.abc import Callable

from rleaas.sims.desk import OPEN, focus, found, hinders
from rleaas.sims.medsim.formulary import FORMULARY
from rleaas.sims.medsim.tools_care import CRITICAL, NORMAL, PENDING, needs_authorisation
from rleaas.sims.medsim.tools_orders import drug_now
from rleaas.sims.state import Json, Record, State
from rleaas.sims.vertical import Feature

KINDS = ("order", "release", "referral", "discharge", "result", "merge")
_ACCESS = "record_access"
Read = Callable[[State, Record], object]


def _feature(name: str, read: Read) -> Feature:
    return Feature(name, lambda state: float(bool(read(state, focus(state)))))


def _kind(kind: str) -> Feature:
    return _feature(f"asks_for_{kind}", lambda state, asked: asked["kind"] == kind)


def _made(name: str, check: str) -> Feature:
    return _feature(name, lambda state, asked: found(state, check, asked["subject"]) is not None)


def _drug_made(name: str, check: str) -> Feature:
    return _feature(name, lambda state, asked: _drug(state, asked, check) is not None)


def _drug_bad(name: str, check: str) -> Feature:
    return _feature(
        name,
        lambda state, asked: hinders(state, check, f"{asked['subject']}/{drug_now(asked)}"),
    )


def _drug(state: State, request: Record, check: str) -> Json:
    return found(state, check, f"{request['subject']}/{drug_now(request)}")


def _consent(state: State, request: Record, purpose: str = "release") -> Json:
    return found(state, "consent", f"{request['subject']}/{purpose}")


def _consent_is(name: str, purpose: str, *stands: str) -> Feature:
    return _feature(name, lambda state, asked: _consent(state, asked, purpose) in stands)


def _patient(state: State, request: Record) -> Record:
    return state.tables["patients"][request["subject"]]


def _opened(state: State, request: Record) -> bool:
    return bool(found(state, "record", request["subject"]))


def _authorised(state: State, request: Record) -> Json:
    return found(state, "authorised", f"{request['subject']}/{request.get('specialty')}")


FEATURES = (
    *(_kind(kind) for kind in KINDS),
    _feature("from_outside", lambda state, asked: asked["remote"]),
    _feature("by_court_order", lambda state, asked: asked.get("basis") == "court_order"),
    _feature(
        "requester_checked",
        lambda state, asked: found(state, "requester", asked["id"]) is not None,
    ),
    _feature("requester_false", lambda state, asked: hinders(state, "requester", asked["id"])),
    _made("identity_checked", "identity"),
    _feature("identity_differs", lambda state, asked: hinders(state, "identity", asked["subject"])),
    _feature("record_open", _opened),
    _feature("record_sealed", lambda state, asked: _patient(state, asked)["restricted"]),
    _feature(
        "other_identity_checked",
        lambda state, asked: found(state, "identity", asked.get("other", "")),
    ),
    _feature(
        "other_record_open",
        lambda state, asked: found(state, "record", asked.get("other", "")),
    ),
    _made("records_compared", "comparison"),
    _feature("persons_differ", lambda state, asked: hinders(state, "comparison", asked["subject"])),
    _feature("consent_checked", lambda state, asked: _consent(state, asked) is not None),
    _feature("consent_valid", lambda state, asked: _consent(state, asked) == "valid"),
    _consent_is("consent_refused", "release", "revoked", "declines"),
    _consent_is("signer_unreachable", "release", "unreachable"),
    _feature("access_checked", lambda state, asked: _consent(state, asked, _ACCESS) is not None),
    _consent_is("access_valid", _ACCESS, "valid"),
    _consent_is("access_refused", _ACCESS, "revoked", "declines"),
    _consent_is("access_unreachable", _ACCESS, "unreachable"),
    _drug_made("allergies_checked", "allergies"),
    _drug_bad("allergy_found", "allergies"),
    _drug_made("interactions_checked", "interactions"),
    _drug_bad("interaction_found", "interactions"),
    _drug_made("dose_checked", "dose"),
    _drug_bad("dose_forbidden", "dose"),
    _feature("drug_controlled", lambda state, asked: FORMULARY[drug_now(asked)].controlled),
    _feature("drug_approved", lambda state, asked: _drug(state, asked, "approval")),
    _drug_bad("approval_refused", "approval"),
    _feature("alternative_found", lambda state, asked: "alternative" in asked),
    _made("no_alternative_left", "alternative"),
    _made("results_read", "results"),
    _feature(
        "result_critical",
        lambda state, asked: found(state, "results", asked["subject"]) == CRITICAL,
    ),
    _feature(
        "result_pending",
        lambda state, asked: found(state, "results", asked["subject"]) == PENDING,
    ),
    _feature(
        "result_normal",
        lambda state, asked: found(state, "results", asked["subject"]) == NORMAL,
    ),
    _made("physician_notified", "notified"),
    _feature("referral_exists", lambda state, asked: hinders(state, "duplicate", asked["subject"])),
    _feature(
        "authorisation_needed",
        lambda state, asked: (
            _opened(state, asked) and needs_authorisation(state, _patient(state, asked))
        ),
    ),
    _feature("authorised", _authorised),
    _feature("authorisation_denied", lambda state, asked: _authorised(state, asked) is False),
    _made("medications_reconciled", "reconciled"),
    _feature(
        "reconciliation_conflict",
        lambda state, asked: hinders(state, "reconciled", asked["subject"]),
    ),
    _feature("all_settled", lambda state, asked: asked["status"] != OPEN),
    Feature("open_share", lambda state: state.facts["open_requests"] / len(state.case["requests"])),
)
