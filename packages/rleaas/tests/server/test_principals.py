"""Who a bearer is taken for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rlcore import AuthenticationError, Secret
from rleaas.server.keys import ServerKeys
from rleaas.server.principals import LOCAL, OPERATOR, Principals
from rleaas.server.store import keys
from rleaas.server.store.database import Database
from rleaas.server.store.tables import ApiKeyRow, OrganisationRow, UserRow
from sqlalchemy import select


@dataclass
class House:
    database: Database
    signing: ServerKeys

    def principals(self, *, is_open: bool = False, operator: str | None = None) -> Principals:
        key = None if operator is None else Secret(operator)
        return Principals(self.database, self.signing, operator=key, is_open=is_open)

    def key(self, *scopes: str, lives: timedelta | None = None, **limits: object) -> str:
        now = datetime.now(UTC)
        with self.database.write() as session:
            session.add(OrganisationRow(id=2, name="lab", limits={"rate": 5}, created_at=now))
            user = UserRow(id="u1", email="u@lab", profile={}, created_at=now)
            session.add(user)
            session.flush()
            _, secret = keys.make(
                session,
                2,
                user,
                name="k",
                scopes=scopes,
                expires_at=None if lives is None else now + lives,
                limits=limits,
            )
        return secret.reveal()


@pytest.fixture
def house(database: Database, tmp_path: Path) -> House:
    return House(database, ServerKeys(tmp_path / "server.key"))


def test_a_key_names_its_user_organisation_scopes_and_limits(house: House) -> None:
    secret = house.key("read", "write", quota=3)
    found = house.principals().find(secret)

    assert (found.organisation_id, found.organisation, found.user_id) == (2, "lab", "u1")
    assert found.scopes == {"read", "write"}
    assert dict(found.limits) == {"rate": 5.0, "quota": 3.0}


def test_of_a_key_nothing_is_kept_that_could_be_used(house: House) -> None:
    secret = house.key("read")
    assert secret.startswith("rleaas_sk_")
    assert len(secret) >= len("rleaas_sk_") + 43  # 256 bits in base64
    with house.database.read() as session:
        row = session.scalars(select(ApiKeyRow)).one()
    assert secret not in repr(vars(row))
    assert secret.startswith(row.prefix)
    assert len(row.prefix) < 20


def test_a_key_that_was_used_says_when(house: House) -> None:
    house.principals().find(house.key("read"))
    with house.database.read() as session:
        used = session.scalars(select(ApiKeyRow)).one().last_used_at
    assert used is not None
    assert abs((datetime.now(UTC) - used).total_seconds()) < 30


def test_an_expired_key_is_told_so(house: House) -> None:
    secret = house.key("read", lives=timedelta(seconds=-1))
    with pytest.raises(AuthenticationError, match="expired"):
        house.principals().find(secret)


@pytest.mark.parametrize("is_open", [True, False])
def test_a_revoked_key_is_refused_at_once_also_where_others_need_none(
    house: House, is_open: bool
) -> None:
    secret = house.key("read")
    principals = house.principals(is_open=is_open)
    assert principals.find(secret) == principals.remembered(secret)
    with house.database.write() as session:
        session.scalars(select(ApiKeyRow)).one().is_active = False
    principals.forget()

    assert principals.remembered(secret) is None
    with pytest.raises(AuthenticationError, match="revoked"):
        principals.find(secret)


def test_an_open_server_takes_any_bearer_for_somebody_at_this_machine(house: House) -> None:
    principals = house.principals(is_open=True)
    assert principals.remembered(None) is LOCAL
    assert principals.find("whatever") is LOCAL


def test_a_closed_server_wants_a_key_that_it_knows(house: House) -> None:
    principals = house.principals()
    with pytest.raises(AuthenticationError, match="needed"):
        principals.remembered(None)
    with pytest.raises(AuthenticationError, match="not valid"):
        principals.find("whatever")


def test_the_operators_key_needs_no_database(house: House) -> None:
    assert house.principals(operator="top").remembered("top") is OPERATOR
