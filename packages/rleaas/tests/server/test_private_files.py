"""What lies in the data directory, who may read it, and what goes with an environment."""

from __future__ import annotations

import signal
import stat
from pathlib import Path

import pytest
from rleaas.server.envhost.process import ended_with
from rleaas.server.store.database import Database
from rleaas.server.store.tables import IdempotencyRow
from sqlalchemy import select, text

from .conftest import Running, Start


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_data_directory_and_the_database_are_for_their_owner_only(
    start: Start, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    start(data=data)

    assert mode(data) == 0o700
    assert {mode(file) for file in data.glob("rleaas.db*")} <= {0o600}


def test_a_database_that_everybody_could_read_is_closed_when_it_is_opened(tmp_path: Path) -> None:
    file = tmp_path / "rleaas.db"
    file.touch(mode=0o644)
    database = Database(file)
    with database.write(1) as session:
        session.execute(text("CREATE TABLE t (a INTEGER)"))
    found = {one.name: mode(one) for one in tmp_path.glob("rleaas.db*")}
    database.close()

    assert found == dict.fromkeys(["rleaas.db", "rleaas.db-wal", "rleaas.db-shm"], 0o600)


def test_a_deleted_environment_leaves_neither_files_nor_replies(platform: Running) -> None:
    body = {"name": "CartPole", "source": "gym://CartPole-v1"}
    sent = platform.http.post(
        "/api/custom-environments", json=body, headers={"idempotency-key": "once"}
    )
    platform.ok(sent)
    platform.ok(platform.http.get("/api/environments/CartPole/endpoint"))
    logs = platform.server.state.settings.data_dir / "logs" / "environments"
    (logs / "1.log").write_text("hello")
    before = {file.name for file in logs.iterdir()}
    platform.ok(platform.http.delete("/api/custom-environments/CartPole"))
    with platform.server.state.database.read() as session:
        replies = session.scalars(select(IdempotencyRow)).all()

    assert before == {"1.log", "1.json"}
    assert list(logs.iterdir()) == []
    assert replies == []


@pytest.mark.parametrize(
    ("code", "how"),
    [
        (3, "ended with exit code 3"),
        (-signal.SIGKILL, "killed by SIGKILL"),
        (-40, "killed by signal 40"),
    ],
)
def test_the_end_of_a_process_tells_its_signal_or_exit_code(code: int, how: str) -> None:
    assert ended_with(code) == how
