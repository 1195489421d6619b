"""Routes about grader tests of verifiers."""

from fastapi import APIRouter, Depends
from rlcore import ConfigurationError
from sqlalchemy.orm import Session

from rleaas.server import render_catalogue as render
from rleaas.server.access import Caller, require_user
from rleaas.server.failures import documented
from rleaas.server.routes.bodies import JsonObject
from rleaas.server.routes.repeats import Once, RepeatableRoute
from rleaas.server.routes.verifier_bodies import AuditVerifier, KnownEpisode
from rleaas.server.store import audit as trail
from rleaas.server.store import environments, verifier_audits, verifiers
from rleaas.server.store.verifier_definitions import finder
from rleaas.sims.catalogue import VERTICALS, vertical_of
from rleaas.sims.known import KnownEpisodes, known_episodes
from rleaas.verify import Definition, Trajectory, audit, judge_of
from rleaas.verify.fingerprint import fingerprint

router = APIRouter(
    route_class=RepeatableRoute,
    tags=["verifiers"],
    dependencies=[Depends(require_user)],
    responses=documented(401),
)


@router.post(
    "/api/verifiers/{verifier_id}/audit",
    dependencies=[Once],
    responses=documented(400, 404, 409, 422),
)
def audit_verifier(verifier_id: str, body: AuditVerifier, caller: Caller) -> JsonObject:
    """Test a verifier with episodes whose worth is known, and with tricks on them.

    What it found is kept with the version. One that passed with five different good and five
    different bad episodes makes the verifier audited, until what it judges by changes. A language
    model is asked anew for each verdict.
    """
    judging = caller.state.judging
    with caller.read() as session:
        row = verifiers.find(session, verifier_id)
        definitions: dict[str, Definition] = {}
        find = finder(session, definitions)
        judge_of(find(row.id), find, means=judging.checking)
        judged_by = fingerprint(row.id, find, judging.model)
        known = _known(session, row.id, body)
    definition = definitions[row.id]
    with judging.judge(definition, definitions.__getitem__, fresh=True) as judge:
        report = audit(
            judge,
            good=known.good,
            bad=known.bad,
            repeats=body.repeats,
            probed=body.probed,
            allow_empty=known.allow_empty,
            most_wrong=body.most_wrong,
        )
    with caller.write() as session:
        row = verifiers.find(session, row.id)
        made = verifier_audits.record(session, row, judged_by, report)
        made.version = definition.version or made.version
        trail.record(
            session,
            caller,
            action="verifier.audited",
            subject=f"verifier:{row.id}",
            data={"version": made.version, "passed": made.passed},
        )
        session.flush()
        return render.verifier_audit(
            made, row.id, verifier_audits.is_audited(session, row, judging.model)
        )


@router.get("/api/verifiers/{verifier_id}/audits", responses=documented(404))
def list_audits(verifier_id: str, caller: Caller) -> JsonObject:
    """The audits of a verifier, newest first; `audited` says whether the newest one counts now."""
    with caller.read() as session:
        row = verifiers.find(session, verifier_id)
        counts = verifier_audits.is_audited(session, row, caller.state.judging.model)
        shown = [
            render.verifier_audit(one, row.id, counts and place == 0)
            for place, one in enumerate(verifier_audits.page(session, row))
        ]
    return {"audits": shown, "count": len(shown), "audited": counts}


def _known(session: Session, verifier_id: str, body: AuditVerifier) -> KnownEpisodes:
    good, bad = _episodes(body.good), _episodes(body.bad)
    allow_empty = body.allow_empty
    if body.environment is not None:
        row = environments.find(session, body.environment)
        name = row.vertical or ""
        if name not in VERTICALS:
            raise ConfigurationError(
                f"environment {row.name!r} has no scenarios whose solutions are known: it is of no "
                "built-in vertical",
                code="audit_without_episodes",
                hint="Give good and bad episodes",
            )
        played = known_episodes(vertical_of(name), verifier_id, scenario_ids=body.scenario_ids)
        good, bad = (*good, *played.good), (*bad, *played.bad)
        allow_empty = allow_empty or played.allow_empty
    return KnownEpisodes(good, bad, allow_empty)


def _episodes(given: list[KnownEpisode]) -> tuple[Trajectory, ...]:
    return tuple(Trajectory.of(one.trajectory, one.state) for one in given)
