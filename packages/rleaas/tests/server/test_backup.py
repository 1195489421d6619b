"""Backups of running servers, and their way back, on both engines."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import pytest
from rlcore import ConfigurationError
from rleaas.server.backup.making import backup
from rleaas.server.backup.restoring import restore
from rleaas.server.store.database import Database
from rleaas.server.store.tables import Base
from sqlalchemy import select, text

from .archives import digest_of, policy_file
from .conftest import MakeDatabase, Running, Start

PLAN: list[tuple[str, dict[str, object]]] = [
    ("checkpoint", {"episode": 1, "avg_reward": 3.5, "content": "weights"}),
    ("completed", {}),
]
SECRET = "whsec_0123456789abcdef0123456789"


@pytest.fixture
def filled(start: Start) -> Running:
    """A server with rows and files of every kind."""
    platform = start(plan=PLAN)
    platform.ready("Käfig")
    job = platform.train("Käfig")
    assert platform.finished("training", job) == "completed"
    upload(platform, b"rows of data")
    evaluation = platform.ok(platform.http.post("/api/rollouts/export", json={"format": "csv"}))
    assert evaluation["sha256"]
    platform.ok(
        platform.http.put(
            "/api/environments/Käfig/repo",
            json={
                "provider": "github",
                "repoUrl": "https://github.com/a/b",
                "authType": "pat",
                "token": SECRET,
            },
        )
    )
    platform.ok(platform.http.post("/api/organisations", json={"name": "lab", "admin": "a@lab"}))
    return platform


def upload(platform: Running, content: bytes, name: str = "data.csv") -> str:
    reply = platform.http.post(
        "/api/data-assets", params={"name": name}, content=content, headers={"content-type": "x/y"}
    )
    return str(platform.ok(reply)["id"])


def place_of(platform: Running) -> Path | str:
    settings = platform.server.state.settings
    return settings.database_url or settings.data_dir / "rleaas.db"


def new_place(platform: Running, data: Path, postgresql: MakeDatabase | None) -> Path | str:
    if platform.server.state.settings.database_url is None:
        return data / "rleaas.db"
    assert postgresql is not None
    return postgresql()


def everything(place: Path | str) -> dict[str, list[dict[str, object]]]:
    """All rows but those of who is alive, and of the audit chain, with which each place goes on."""
    database = Database(place)
    try:
        with database.read() as session:
            return {
                table.name: sorted(
                    (
                        dict(row)
                        for row in session.execute(select(table)).mappings()
                        if row.get("name") != "audit_seal"
                    ),
                    key=repr,
                )
                for table in Base.metadata.sorted_tables
                if table.name not in ("leases", "audit_records")
            }
    finally:
        database.close()


def test_a_backup_of_a_running_server_brings_back_rows_files_and_secrets(
    filled: Running,
    start: Start,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    engine: str | None,
) -> None:
    data = filled.server.state.settings.data_dir
    made = backup(data, place_of(filled), tmp_path / "one.zip")
    assert (made.missing, made.audit_problem) == ((), None)
    assert (tmp_path / "one.zip").stat().st_mode & 0o077 == 0
    make: MakeDatabase | None = None if engine is None else request.getfixturevalue("postgresql")
    again = tmp_path / "again"
    place = new_place(filled, again, make)
    done = restore(tmp_path / "one.zip", again, place)

    assert (done.rows, done.files, done.missing, done.audit_problem) == (
        made.rows,
        made.files,
        (),
        None,
    )
    before = everything(place_of(filled))
    assert everything(place) == before
    assert {name for name, rows in before.items() if rows} > {"jobs", "checkpoints", "data_assets"}
    for file in (Path("server.key"), *_files(data)):
        assert (again / file).read_bytes() == (data / file).read_bytes(), file
    second = start(data=again, database_url=None if isinstance(place, Path) else place)
    checkpoint = before["checkpoints"][0]["id"]
    reply = second.http.get(f"/api/checkpoints/{checkpoint}/file")
    assert reply.content == policy_file()
    assert second.ok(second.http.get("/api/audit/verify"))["valid"] is True
    newest = max(int(str(row["id"])) for row in before["events"])
    second.ready("Fresh")
    assert max(int(str(row["id"])) for row in everything(place)["events"]) > newest
    keys = second.server.state.keys
    with second.server.state.database.read() as session:
        sealed = session.scalar(text("SELECT encrypted_token FROM repositories"))
    assert keys.unseal("repositories", str(sealed)).reveal() == SECRET


def _files(data: Path) -> list[Path]:
    folders = (f"artifacts/{digest_of('weights')[:2]}", "assets", "reports")
    found = [path for name in folders for path in (data / name).rglob("*") if path.is_file()]
    assert len(found) == 3
    return [path.relative_to(data) for path in found]


def test_a_backup_is_of_one_moment_while_writes_go_on(
    start: Start, tmp_path: Path, request: pytest.FixtureRequest, engine: str | None
) -> None:
    platform = start()
    data = platform.server.state.settings.data_dir
    stop = threading.Event()
    made: list[str] = []

    def write() -> None:
        while not stop.is_set():
            number = len(made)
            asset = upload(platform, f"content {number}".encode(), f"{number}.csv")
            platform.register(f"E{number}")
            if number % 2:
                assert platform.http.delete(f"/api/data-assets/{asset}").status_code == 200
            made.append(asset)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(3):
            done = backup(data, place_of(platform), tmp_path / f"{number}.zip")
            assert (done.missing, done.audit_problem) == ((), None)
    finally:
        stop.set()
        writer.join()
    make: MakeDatabase | None = None if engine is None else request.getfixturevalue("postgresql")
    again = tmp_path / "again"
    place = new_place(platform, again, make)
    restore(tmp_path / "2.zip", again, place)

    found = everything(place)
    assert len(made) > 3
    for row in found["data_assets"]:
        path = next((again / "assets").rglob(str(row["sha256"])))
        assert hashlib.sha256(path.read_bytes()).hexdigest() == row["sha256"]
    versions = {row["environment_id"] for row in found["environment_versions"]}
    assert versions == {row["id"] for row in found["environments"]}
    assert not list(data.glob(".backup-*"))


def test_what_is_there_is_replaced_only_by_force_and_as_a_whole(
    filled: Running, tmp_path: Path, request: pytest.FixtureRequest, engine: str | None
) -> None:
    data = filled.server.state.settings.data_dir
    place = place_of(filled)
    backup(data, place, tmp_path / "one.zip")
    before = everything(place)
    filled.register("Later")
    with pytest.raises(ConfigurationError, match="in use"):
        restore(tmp_path / "one.zip", data, place, force=True)
    filled.server.stop()

    with pytest.raises(ConfigurationError) as refused:
        restore(tmp_path / "one.zip", data, place)
    assert refused.value.code == "not_empty"
    assert len(everything(place)["environments"]) == 2
    (data / "logs" / "jobs" / "stranger.log").write_text("not in the backup")
    restore(tmp_path / "one.zip", data, place, force=True)

    assert everything(place) == before
    assert not (data / "logs" / "jobs" / "stranger.log").exists()
    assert not list(data.glob(".re*"))
    with pytest.raises(ConfigurationError):
        restore(tmp_path / "one.zip", data, place)


def test_what_one_engine_kept_is_restored_to_the_other(
    filled: Running, tmp_path: Path, postgresql: MakeDatabase, engine: str | None
) -> None:
    data = filled.server.state.settings.data_dir
    backup(data, place_of(filled), tmp_path / "one.zip")
    other: Path | str = postgresql() if engine is None else tmp_path / "other" / "rleaas.db"
    restore(tmp_path / "one.zip", tmp_path / "other", other)
    backup(tmp_path / "other", other, tmp_path / "two.zip")
    back = new_place(filled, tmp_path / "back", postgresql)
    restore(tmp_path / "two.zip", tmp_path / "back", back)

    assert everything(other) == everything(back) == everything(place_of(filled))


def test_a_backup_from_before_an_upgrade_is_upgraded_when_it_is_restored(
    tmp_path: Path, engine: str | None, request: pytest.FixtureRequest
) -> None:
    make: MakeDatabase | None = None if engine is None else request.getfixturevalue("postgresql")
    place: Path | str = tmp_path / "old" / "rleaas.db" if make is None else make()
    old = Database(place)
    old.migrate("0001")
    with old.write() as session:
        session.execute(
            text(
                "INSERT INTO environments (id, name, description, tags, details, created_at,"
                " updated_at) VALUES (5, 'Old', '', '[\"a\"]', '{}', CURRENT_TIMESTAMP,"
                " CURRENT_TIMESTAMP)"
            )
        )
    old.close()
    (tmp_path / "old").mkdir(exist_ok=True)
    (tmp_path / "old" / "server.key").write_bytes(b"k" * 32)
    made = backup(tmp_path / "old", place, tmp_path / "old.zip")
    again: Path | str = tmp_path / "new" / "rleaas.db" if make is None else make()
    done = restore(tmp_path / "old.zip", tmp_path / "new", again)

    assert (made.revision, done.from_revision) == ("0001", "0001")
    assert done.revision > "0001"
    (row,) = everything(again)["environments"]
    assert row["name"] == "Old"
