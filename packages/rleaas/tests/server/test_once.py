from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from rlcore import ConflictError
from rleaas.server.store import once
from rleaas.server.store.database import Database
from rleaas.server.store.jobs import IdempotencyKey
from rleaas.server.store.tables import IdempotencyRow, OrganisationRow
from sqlalchemy import func, select

ASKED = IdempotencyKey("tools", "k1", "digest")


def test_the_same_key_gets_the_reply_that_was_kept(database: Database) -> None:
    with database.write(1) as session:
        assert once.earlier(session, ASKED) is None
        once.keep(session, ASKED, "tool_1", {"id": "tool_1", "tags": ["ä"]})

    with database.write(1) as session:
        assert once.earlier(session, ASKED) == {"id": "tool_1", "tags": ["ä"]}


def test_a_key_for_another_request_is_a_conflict(database: Database) -> None:
    with database.write(1) as session:
        once.keep(session, ASKED, "tool_1", {})

    with database.read(1) as session, pytest.raises(ConflictError) as caught:
        once.earlier(session, IdempotencyKey("tools", "k1", "other"))

    assert caught.value.code == "idempotency_conflict"


def test_other_routes_and_other_organisations_have_keys_of_their_own(database: Database) -> None:
    with database.write() as session:
        session.add(OrganisationRow(id=2, name="two", limits={}, created_at=datetime.now(UTC)))
    with database.write(1) as session:
        once.keep(session, ASKED, "tool_1", {"id": "tool_1"})

    with database.write(1) as session:
        assert once.earlier(session, IdempotencyKey("agents", "k1", "digest")) is None
    with database.write(2) as session:
        assert once.earlier(session, ASKED) is None
        once.keep(session, ASKED, "tool_2", {"id": "tool_2"})
    with database.read(1) as session:
        assert once.earlier(session, ASKED) == {"id": "tool_1"}


def test_nothing_is_kept_without_a_key_or_when_the_work_fails(database: Database) -> None:
    def work_and_fail() -> None:
        with database.write(1) as session:
            once.keep(session, ASKED, "tool_1", {})
            raise ZeroDivisionError

    with database.write(1) as session:
        assert once.earlier(session, None) is None
        once.keep(session, None, "tool_1", {})
    with pytest.raises(ZeroDivisionError):
        work_and_fail()

    with database.read(1) as session:
        assert session.scalar(select(func.count()).select_from(IdempotencyRow)) == 0


def test_of_requests_with_one_key_at_once_one_does_the_work(database: Database) -> None:
    done: list[int] = []

    def request(number: int) -> object:
        with database.write(1) as session:
            before = once.earlier(session, ASKED)
            if before is not None:
                return before
            done.append(number)
            reply: dict[str, object] = {"made_by": number}
            once.keep(session, ASKED, "tool_1", reply)
            return reply

    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(request, range(16)))

    assert len(done) == 1
    assert replies == [{"made_by": done[0]}] * 16


def test_old_replies_are_forgotten_but_not_the_keys_of_jobs(database: Database) -> None:
    long_ago = datetime.now(UTC) - once.KEPT_FOR - timedelta(seconds=1)
    with database.write(1) as session:
        for key, reply in (("old", {"id": "x"}), ("job", None)):
            session.add(
                IdempotencyRow(
                    scope="tools",
                    key=key,
                    body_digest="d",
                    resource_id="x",
                    reply=reply,
                    created_at=long_ago,
                )
            )

    with database.write(1) as session:
        once.keep(session, ASKED, "tool_1", {})

    with database.read(1) as session:
        assert set(session.scalars(select(IdempotencyRow.key))) == {"k1", "job"}
