"""The scenarios that a job plays, as they are when it is made."""

from collections.abc import Sequence

from rlcore import ConfigurationError, ConflictError, ScenarioNotFound, SuiteNotFound
from sqlalchemy.orm import Session

from rleaas.server.rules import library
from rleaas.server.store import catalogue, held_out, scenarios, suites
from rleaas.server.store.suites import TRAINING
from rleaas.server.store.tables import JsonObject, ScenarioRow, SuiteRow


def trained_on(session: Session, reference: str) -> JsonObject:
    """The scenarios of the suite with this id or name, or the one scenario.

    Raises:
        ScenarioNotFound: there is neither, or the suite has one that was deleted.
        ConflictError: the suite is held out for evaluation (`evaluation_suite`), or an evaluation
            suite has one of the scenarios (`scenarios_shared`).
        ConfigurationError: the suite is empty.
    """
    suite = suite_of(session, reference)
    if suite is None:
        played = scenarios.as_played(session, reference)
        held_out.require_apart(session, [str(played["id"])], TRAINING)
        return {"scenarios": [played]}
    if suite.purpose != TRAINING:
        raise ConflictError(
            f"suite {suite.id!r} is held out for {suite.purpose}: nothing trains on it",
            code="evaluation_suite",
            hint="Train on a suite with purpose 'training'",
        )
    found = scenarios_of(session, suite)
    held_out.require_apart(session, suite.scenario_ids, TRAINING)
    return found


def evaluated_on(
    session: Session, suite_reference: str | None, scenario_ids: Sequence[str]
) -> JsonObject:
    """The scenarios that an evaluation plays: those of a suite, or those that are named.

    Raises:
        SuiteNotFound, ScenarioNotFound: there is none, or the suite has one that was deleted.
        ConfigurationError: the suite is empty, or a scenario is named twice.
    """
    if suite_reference:
        suite = suite_of(session, suite_reference)
        if suite is None:
            raise SuiteNotFound(suite_reference)
        return {**scenarios_of(session, suite), "purpose": suite.purpose}
    played = [scenarios.as_played(session, one) for one in scenario_ids]
    ids = [str(one["id"]) for one in played]
    repeated = next((one for one in ids if ids.count(one) > 1), None)
    if repeated is not None:
        raise ConfigurationError(
            f"scenario {repeated!r} is named twice", code="invalid_evaluation", hint="Name it once"
        )
    return {"scenarios": played} if played else {}


def suite_of(session: Session, reference: str) -> SuiteRow | library.BuiltInSuite | None:
    """The suite with this id or name, of the organisation's or built in; None: there is none."""
    found = catalogue.by_id(session, SuiteRow, reference)
    if found is not None or catalogue.by_id(session, ScenarioRow, reference) is not None:
        return found
    shipped = library.suite(reference)
    if shipped is not None:
        return shipped
    try:
        return suites.find(session, reference)
    except SuiteNotFound:
        # Then it is a scenario's name, or nothing.
        return None


def scenarios_of(session: Session, suite: SuiteRow | library.BuiltInSuite) -> JsonObject:
    """A suite with its version and its scenarios as they are now.

    Raises:
        ScenarioNotFound: one was deleted.
        ConfigurationError: it is empty.
    """
    if not suite.scenario_ids:
        raise ConfigurationError(
            f"suite {suite.id!r} has no scenarios", hint="Add some, or leave it out"
        )
    version: JsonObject
    if isinstance(suite, library.BuiltInSuite):
        version = {"suite_version": library.VERSION, "suite_sha256": suite.digest}
    else:
        version = {"suite_version": suite.version}
    return {
        "suite_id": suite.id,
        **version,
        "scenarios": [_of_suite(session, suite.id, one) for one in suite.scenario_ids],
    }


def _of_suite(session: Session, suite_id: str, scenario_id: str) -> JsonObject:
    known = catalogue.by_id(session, ScenarioRow, scenario_id) or library.find(scenario_id)
    if known is None:
        raise ScenarioNotFound(
            scenario_id,
            hint=f"Suite {suite_id!r} lists it, and it was deleted: take it out of the suite",
        )
    return scenarios.as_played(session, scenario_id)
