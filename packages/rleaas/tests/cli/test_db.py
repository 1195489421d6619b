"""`rleaas db …`, as an operator types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rleaas.cli.main import main
from rleaas.server.bootstrap import bootstrap
from rleaas.server.data_lock import DataLock
from rleaas.server.keys import ServerKeys
from rleaas.server.store.database import Database

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    place = tmp_path / "data"
    ServerKeys(place / "server.key")
    bootstrap(place / "rleaas.db", email="a@b", name="first")
    return place


def said(capsys: Captured, *arguments: object) -> dict[str, object]:
    assert main([*map(str, arguments), "--json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_a_backup_is_made_and_restored_once(data: Path, tmp_path: Path, capsys: Captured) -> None:
    archive, new = tmp_path / "one.zip", tmp_path / "new"
    made = said(capsys, "db", "backup", "--data", data, "--to", archive)
    done = said(capsys, "db", "restore", archive, "--data", new)

    assert made["rows"] == done["rows"]
    assert (new / "server.key").read_bytes() == (data / "server.key").read_bytes()
    assert main(["db", "restore", str(archive), "--data", str(new)]) == 2
    assert "--force" in capsys.readouterr().err
    assert main(["db", "restore", str(archive), "--data", str(new), "--force"]) == 0
    assert "revision" in capsys.readouterr().out


def test_a_damaged_archive_is_a_failure(data: Path, tmp_path: Path, capsys: Captured) -> None:
    archive = tmp_path / "one.zip"
    said(capsys, "db", "backup", "--data", data, "--to", archive)
    archive.write_bytes(archive.read_bytes()[:-30])

    assert main(["db", "restore", str(archive), "--data", str(tmp_path / "new")]) == 1
    assert "the backup cannot be used" in capsys.readouterr().err


def test_an_upgrade_is_looked_at_before_it_is_run(tmp_path: Path, capsys: Captured) -> None:
    database = Database(tmp_path / "rleaas.db")
    database.migrate("0001")
    database.close()
    here = ("--data", tmp_path)

    assert said(capsys, "db", "current", *here)["current"] == "0001"
    would = said(capsys, "db", "upgrade", "--dry-run", *here)
    assert would["done"] is False
    assert said(capsys, "db", "current", *here)["current"] == "0001"
    did = said(capsys, "db", "upgrade", *here)
    assert did["migrations"] == would["migrations"] != []
    after = said(capsys, "db", "current", *here)
    assert (after["current"], after["pending"]) == (did["to"], [])
    assert main(["db", "upgrade", *map(str, here)]) == 0
    assert "already" in capsys.readouterr().out


def test_the_tables_of_a_running_server_are_not_upgraded(tmp_path: Path, capsys: Captured) -> None:
    database = Database(tmp_path / "rleaas.db")
    database.migrate("0001")
    database.close()
    lock = DataLock(tmp_path)
    try:
        assert main(["db", "upgrade", "--data", str(tmp_path)]) == 2
    finally:
        lock.release()
    assert "in use" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["current"], ["upgrade"], ["backup"]])
def test_where_there_is_no_data_nothing_is_made(
    words: list[str], tmp_path: Path, capsys: Captured
) -> None:
    assert main(["db", *words, "--data", str(tmp_path / "none")]) == 2
    assert "there is no" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
