from datetime import UTC, datetime, timedelta

import pytest
from rlcore import NotFoundError
from rleaas.server.store import audit, audit_chain
from rleaas.server.store.audit import ServerItself
from rleaas.server.store.audit_filters import Filters
from rleaas.server.store.database import Database
from rleaas.server.store.tables import AuditRow, OrganisationRow
from sqlalchemy import delete, update

US = ServerItself(1, "me", "req_1")
THEM = ServerItself(2, "them")
FAR_FUTURE = datetime.now(UTC) + timedelta(days=365)


@pytest.fixture
def database(database: Database) -> Database:
    with database.write() as session:
        session.add(OrganisationRow(id=2, name="other", limits={}, created_at=datetime.now(UTC)))
    return database


def tell(database: Database, count: int, who: ServerItself = US) -> None:
    for number in range(count):
        with database.write(who.organisation_id) as session:
            audit.record(
                session,
                who,
                action="tool.registered" if number % 2 else "agent.deleted",
                subject=f"tool:{number}",
                environment_name=f"env {number % 3}",
                job_id=f"job_{number}",
                agent_id="agent_1",
                data={"number": number, "share": 0.1 * number},
            )


def test_records_of_each_organisation_count_from_one_and_hold_together(
    database: Database,
) -> None:
    tell(database, 3)
    tell(database, 2, THEM)

    with database.read(1) as session:
        ours = audit.page(session)
        assert [row.number for row in ours] == [3, 2, 1]
        assert ours[0].previous == ours[1].digest
        assert ours[-1].previous == audit_chain.START
        assert (ours[0].actor, ours[0].request_id) == ("me", "req_1")
        assert audit_chain.head(session) is not None
    with database.read() as session:
        assert audit_chain.verify(session) is None


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"actor": "somebody else"}, "its content"),
        ({"data": {"number": 7}}, "its content"),
        ({"at": FAR_FUTURE}, "its content"),
        ({"outcome": "denied"}, "its content"),
        ({"request_id": "req_2"}, "its content"),
        ({"environment_name": None}, "its content"),
        ({"previous": "f" * 64}, "its content"),
    ],
)
def test_a_changed_record_is_found(
    database: Database, change: dict[str, object], complaint: str
) -> None:
    tell(database, 4)
    with database.write() as session:
        session.execute(update(AuditRow).where(AuditRow.number == 2).values(**change))

    with database.read(1) as session:
        problem = audit_chain.verify(session)

    assert problem is not None
    assert (problem.number, complaint in problem.what) == (2, True)
    assert "record 2 of organisation 1" in str(problem)


def test_a_record_that_was_forged_with_its_digest_is_found_at_the_next(database: Database) -> None:
    tell(database, 4)
    with database.write(1) as session:
        row = audit.page(session, oldest_first=True)[1]
        row.actor = "somebody else"
        row.digest = audit_chain.digest_of(row)

    with database.read(1) as session:
        problem = audit_chain.verify(session)

    assert problem is not None
    assert (problem.number, problem.what) == (3, "it is not attached to the record before it")


@pytest.mark.parametrize(("gone", "found"), [(2, 3), (1, 2)])
def test_a_removed_record_is_found(database: Database, gone: int, found: int) -> None:
    tell(database, 4)
    with database.write() as session:
        session.execute(delete(AuditRow).where(AuditRow.number == gone))

    with database.read(1) as session:
        problem = audit_chain.verify(session)

    assert problem is not None
    assert problem.number == found


def test_what_a_retention_rule_removed_is_anchored_and_the_rest_still_verifies(
    database: Database,
) -> None:
    tell(database, 6)
    tell(database, 2, THEM)
    with database.read(1) as session:
        moment = audit.page(session, oldest_first=True)[3].at

    with database.write() as session:
        assert audit.purge(session, 1, moment, 100) == 3
    with database.write() as session:
        assert audit.purge(session, 1, moment, 100) == 0

    with database.read(1) as session:
        rows = audit.page(session, oldest_first=True)
        assert [row.number for row in rows] == [4, 5, 6, 7]
        assert rows[-1].action == audit_chain.PURGED
        assert audit_chain.verify(session) is None
    with database.write() as session:
        assert audit.purge(session, 1, FAR_FUTURE, 2) == 2
        assert audit.purge(session, 1, FAR_FUTURE, 100) == 2
        assert audit_chain.verify(session) is None
    with database.write() as session:
        assert audit.purge(session, 1, FAR_FUTURE, 100) == 0
    with database.read(1) as session:
        assert {row.action for row in audit.page(session)} == {audit_chain.PURGED}
        assert audit_chain.verify(session) is None
    with database.read(2) as session:
        assert audit.count(session) == 2


def test_a_purge_that_claims_less_than_is_gone_is_found(database: Database) -> None:
    tell(database, 6)
    with database.write() as session:
        audit.purge(session, 1, FAR_FUTURE, 2)
        session.execute(delete(AuditRow).where(AuditRow.number == 3))

    with database.read() as session:
        problem = audit_chain.verify(session)

    assert problem is not None
    assert "no record says that they were purged" in problem.what


def test_records_are_found_by_every_filter(database: Database) -> None:
    tell(database, 6)
    with database.write(1) as session:
        audit.record(session, THEM_HERE, action="access.denied", subject="GET /x", outcome="denied")
    with database.read(1) as session:
        times = [row.at for row in audit.page(session, oldest_first=True)]

        def numbers(filters: Filters, **how: int) -> list[int]:
            return [row.number for row in audit.page(session, filters, oldest_first=True, **how)]

        assert numbers(Filters(environment_name="env 0")) == [1, 4]
        assert numbers(Filters(event_types=("tool.registered",))) == [2, 4, 6]
        assert numbers(Filters(event_types=("agent", "access"))) == [1, 3, 5, 7]
        assert numbers(Filters(event_types=("t%",))) == []
        assert numbers(Filters(start=times[4])) == [5, 6, 7]
        assert numbers(Filters(end=times[1])) == [1, 2]
        assert numbers(Filters(job_id="job_3")) == [4]
        assert numbers(Filters(agent_id="agent_1")) == [1, 2, 3, 4, 5, 6]
        assert numbers(Filters(actor="guest", outcome="denied", subject="GET /x")) == [7]
        assert numbers(Filters(), limit=2, offset=3) == [4, 5]
        assert numbers(Filters(), after=5) == [6, 7]
        assert audit.count(session, Filters(environment_name="env 0")) == 2
        assert len(audit.page(session, limit=None)) == 7


THEM_HERE = ServerItself(1, "guest")


def test_values_that_no_database_keeps_are_stored_as_text_and_verify(database: Database) -> None:
    with database.write(1) as session:
        row = audit.record(
            session,
            US,
            action="tool.registered",
            subject="tool:\ud800\0",
            data={"nan": float("nan"), "when": FAR_FUTURE, "many": ("a", {"b": 1}), "nul": "\0"},
        )
        event_id = row.event_id

    with database.read(1) as session:
        kept = audit.find(session, event_id)
        assert kept.subject == "tool:\\ud800\\0"
        assert kept.data["nan"] == "nan"
        assert kept.data["many"] == ["a", {"b": 1}]
        assert audit_chain.verify(session) is None


def test_a_record_of_another_organisation_is_not_found(database: Database) -> None:
    tell(database, 1, THEM)
    with database.read(2) as session:
        event_id = audit.page(session)[0].event_id

    with database.read(1) as session, pytest.raises(NotFoundError):
        audit.find(session, event_id)


def test_nothing_is_recorded_of_a_change_that_was_undone(database: Database) -> None:
    def register_and_fail() -> None:
        with database.write(1) as session:
            audit.record(session, US, action="tool.registered", subject="tool:1")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        register_and_fail()

    with database.read(1) as session:
        assert audit_chain.head(session) is None
        assert audit_chain.verify(session) is None
