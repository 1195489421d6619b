"""What the vector observation tells of the request in focus: what is known, never what is not."""

from __future__ import annotations

from collections.abc import Callable

from rleaas.sims.desk import OPEN, focus, found, hinders
from rleaas.sims.hrsim.records import BANDS, PRIVILEGED
from rleaas.sims.hrsim.tools_access import investigator_now
from rleaas.sims.hrsim.tools_pay import needs_finance
from rleaas.sims.state import Json, Record, State
from rleaas.sims.vertical import Feature

KINDS = (
    *("leave", "payroll", "bank", "access", "leaver"),
    *("grievance", "offer", "data", "erasure"),
)
Read = Callable[[State, Record], object]


def _feature(name: str, read: Read) -> Feature:
    return Feature(name, lambda state: float(bool(read(state, focus(state)))))


def _kind(kind: str) -> Feature:
    return _feature(f"asks_for_{kind}", lambda state, asked: asked["kind"] == kind)


def _made(name: str, check: str, about: str = "subject") -> Feature:
    return _feature(name, lambda state, asked: found(state, check, asked[about]) is not None)


def _bad(name: str, check: str, about: str = "subject") -> Feature:
    return _feature(name, lambda state, asked: hinders(state, check, asked[about]))


def _role(state: State, asked: Record) -> Json:
    return found(state, "role", f"{asked['subject']}/{asked.get('role')}")


def _band(state: State, asked: Record) -> Json:
    return found(state, "band", f"{asked['subject']}/{asked.get('salary', BANDS[1][0])}")


def _independence(state: State, asked: Record) -> Json:
    return found(state, "independence", f"{asked['id']}/{investigator_now(asked)}")


def _kept(state: State, asked: Record) -> Json:
    return found(state, "retention", asked["subject"])


def _person(state: State, asked: Record) -> Record:
    return state.tables["people"][asked["subject"]]


FEATURES = (
    *(_kind(kind) for kind in KINDS),
    _feature("from_outside", lambda state, asked: asked["remote"]),
    _made("requester_checked", "requester", "id"),
    _bad("requester_false", "requester", "id"),
    _made("file_open", "file"),
    _bad("status_hinders", "status", "id"),
    _feature("protected_leave", lambda state, asked: asked.get("leave") in ("sick", "parental")),
    _made("leave_checked", "leave", "id"),
    _bad("leave_lacks", "leave", "id"),
    _made("coverage_checked", "coverage", "id"),
    _bad("coverage_lacks", "coverage", "id"),
    _made("pay_calculated", "pay"),
    _bad("paid_already", "pay"),
    _feature(
        "bonus_needs_finance",
        lambda state, asked: (
            found(state, "pay", asked["subject"]) is not None
            and needs_finance(state, _person(state, asked))
        ),
    ),
    _made("approval_asked", "approval", "id"),
    _bad("approval_refused", "approval", "id"),
    _feature("approved", lambda state, asked: found(state, "approval", asked["id"])),
    _feature("role_privileged", lambda state, asked: asked.get("role") in PRIVILEGED),
    _feature("role_checked", lambda state, asked: _role(state, asked) is not None),
    _feature("role_hindered", lambda state, asked: _role(state, asked) in ("conflict", "training")),
    _made("grievance_assessed", "assessment", "id"),
    _bad("grievance_criminal", "assessment", "id"),
    _feature("independence_checked", lambda state, asked: _independence(state, asked) is not None),
    _feature("independent", lambda state, asked: _independence(state, asked) == "nothing"),
    _made("pool_empty", "pool", "id"),
    _feature("band_checked", lambda state, asked: _band(state, asked) is not None),
    _feature("outside_band", lambda state, asked: _band(state, asked) is False),
    _feature(
        "candidate_consents",
        lambda state, asked: _person(state, asked)["background_consent"],
    ),
    _bad("candidate_declines", "candidate"),
    _made("background_checked", "background"),
    _bad("background_unclear", "background"),
    _made("retention_checked", "retention"),
    _feature("kept_for_litigation", lambda state, asked: _kept(state, asked) == "litigation"),
    _feature(
        "kept_by_law", lambda state, asked: _kept(state, asked) in ("employment", "retention")
    ),
    _feature("all_settled", lambda state, asked: asked["status"] != OPEN),
    Feature("open_share", lambda state: state.facts["open_requests"] / len(state.case["requests"])),
)
