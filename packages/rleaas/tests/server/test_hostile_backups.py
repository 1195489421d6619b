"""Archives that somebody damaged or made up: refused whole, and nothing is left of them."""

from __future__ import annotations

import hashlib
import json
import stat
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rlcore import ConfigurationError, Error, RLEaaSError
from rleaas.server.artifacts.store import member_of
from rleaas.server.backup.archive import ArchiveReader
from rleaas.server.backup.making import backup
from rleaas.server.backup.restoring import restore
from rleaas.server.bootstrap import bootstrap
from rleaas.server.keys import ServerKeys
from rleaas.server.store import environments
from rleaas.server.store.database import Database
from rleaas.server.store.environments import Registration
from rleaas.server.store.tables import AuditRow, CheckpointRow, JobRow
from sqlalchemy import select, text

# What an archive holds, by name; None takes the member away.
Members = dict[str, bytes]
Manifest = dict[str, Any]  # Any: tests change whatever is in it


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of a small server."""
    data = tmp_path_factory.mktemp("good") / "data"
    ServerKeys(data / "server.key")
    bootstrap(data / "rleaas.db", email="a@b", name="first")
    database = Database(data / "rleaas.db")
    with database.write(1) as session:
        version, _ = environments.upsert(session, Registration("Ä"), None)
        now = version.created_at
        session.add(
            JobRow(
                id="job_1",
                kind="training",
                version_id=version.id,
                status="completed",
                request={},
                progress=100,
                results={},
                last_seq=0,
                priority=0,
                attempts=0,
                restarts=0,
                history=[],
                created_at=now,
            )
        )
        session.flush()
        digest = hashlib.sha256(b"weights").hexdigest()
        session.add(
            CheckpointRow(
                id="ckpt_1", job_id="job_1", episode=1, sha256=digest, size_bytes=7, created_at=now
            )
        )
    database.close()
    (data / "checkpoints" / "job_1").mkdir(parents=True)
    (data / "checkpoints" / "job_1" / "ckpt_1.zip").write_bytes(b"weights")
    return backup(data, data / "rleaas.db", data.parent / "good.zip").path


def read(path: Path) -> tuple[Manifest, Members]:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(members.pop("manifest.json")), members


def write(path: Path, manifest: Manifest, members: Members, *, honest: bool = True) -> Path:
    """An archive whose manifest says what is in it, or where it is not honest, what it said."""
    if honest:
        manifest["members"] = {
            name: {"size": len(one), "sha256": hashlib.sha256(one).hexdigest()}
            for name, one in members.items()
        }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, one in members.items():
            archive.writestr(name, one)
        archive.writestr("manifest.json", json.dumps(manifest))
    return path


def refused(path: Path, place: Path) -> Error:
    """The failure; the place, and what is around it, must be as before."""
    around = sorted(place.parent.rglob("*"))
    with pytest.raises(Error) as failure:
        restore(path, place, place / "rleaas.db")
    left = sorted(set(place.parent.rglob("*")) - set(around))
    assert [one for one in left if one.name != "server.lock" and one != place] == []
    return failure.value


Change = Callable[[Manifest, Members], object]


def _rows(table: str, change: Callable[[list[Any]], object]) -> Change:
    def run(manifest: Manifest, members: Members) -> None:
        name = f"tables/{table}.jsonl"
        rows = [json.loads(line) for line in members[name].splitlines()]
        change(rows)
        members[name] = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
        manifest["tables"][table]["rows"] = len(rows)

    return run


def _member(name: str, content: bytes = b"x") -> Change:
    return lambda _, members: members.update({name: content})


def _value(table: str, column: str, value: object) -> Change:
    def run(manifest: Manifest, members: Members) -> None:
        at = manifest["tables"][table]["columns"].index(column)
        _rows(table, lambda rows: rows[0].__setitem__(at, value))(manifest, members)

    return run


def _said(**facts: object) -> Change:
    return lambda manifest, _: manifest.update(facts)


def _without_audit(manifest: Manifest, members: Members) -> None:
    _rows("audit_records", lambda rows: rows.clear())(manifest, members)
    manifest["audit"] = None


DEEP = f"{'[' * 100_000}{']' * 100_000}\n".encode()
CHANGES: dict[str, tuple[Change, str]] = {
    "up": (_member("files/logs/../../../evil"), "no place"),
    "up at once": (_member("files/../evil"), "no place"),
    "absolute": (_member("files//etc/passwd"), "no place"),
    "backslash": (_member("files/logs/..\\evil"), "no place"),
    "empty segment": (_member("files/logs//a"), "no place"),
    "the database itself": (_member("files/rleaas.db"), "no place"),
    "another folder": (_member("files/bin/sh"), "no place"),
    "outside": (_member("evil"), "none that a backup has"),
    "no secret": (lambda _, members: members.pop("files/server.key"), "server.key"),
    "no table": (lambda _, members: members.pop("tables/jobs.jsonl"), "no member"),
    "no file of a row": (
        lambda _, members: members.pop("files/checkpoints/job_1/ckpt_1.zip"),
        "its rows refer to",
    ),
    "another file of a row": (
        _member("files/checkpoints/job_1/ckpt_1.zip", b"other"),
        "its rows refer to",
    ),
    "a row that leads out": (_value("checkpoints", "id", "../../../evil"), "its rows refer to"),
    "no owner": (_rows("environments", lambda rows: rows.clear()), "owners"),
    "two of one key": (_rows("jobs", lambda rows: rows.append(rows[0])), "cannot be taken"),
    "null": (_value("jobs", "status", None), "cannot be taken"),
    "an object": (_value("jobs", "status", {"a": 1}), "no column can hold"),
    "no time": (_value("jobs", "created_at", "yesterday"), "no time"),
    "fewer values": (_rows("jobs", lambda rows: rows[0].pop()), "no row of its"),
    "no row": (_member("tables/jobs.jsonl", b"{\n"), "no row"),
    "depth": (_member("tables/jobs.jsonl", DEEP), "no row"),
    "half a line": (_member("tables/jobs.jsonl", b"[1"), "middle of a line"),
    "fewer rows": (_member("tables/jobs.jsonl", b""), "0 rows, not 1"),
    "an unknown table": (
        lambda manifest, members: (
            manifest["tables"].update(evil=manifest["tables"]["jobs"]),
            members.update({"tables/evil.jsonl": b""}),
        ),
        "not those of revision",
    ),
    "an unknown column": (
        lambda manifest, _: manifest["tables"]["jobs"]["columns"].__setitem__(0, "x\" = '"),
        "differs in the columns",
    ),
    "a changed record": (_value("audit_records", "actor", "somebody else"), "audit chain"),
    "a cut chain": (_rows("audit_records", lambda rows: rows.pop()), "audit chain"),
    "no tables": (_said(tables=None), "describe its tables"),
    "odd tables": (_said(tables={"jobs": 3}), "describe table"),
    "a newer revision": (_said(revision="9999"), "knows none later"),
    "a hostile revision": (_said(revision="../0001; DROP"), "knows none later"),
    "a relative revision": (_said(revision="-1"), "knows none later"),
    "a name for a revision": (_said(revision="head"), "knows none later"),
    "no revision": (_said(revision=""), "knows none later"),
    "no chain and nothing said of it": (_without_audit, "newest audit records"),
    "an empty secret": (_member("files/server.key", b""), "a server's secret"),
    "a newer format": (_said(format_version=2), "format 2"),
    "another format": (_said(format="zip"), "not made by"),
}


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_an_archive_that_was_made_up_is_refused_whole(
    good: Path, tmp_path: Path, name: str
) -> None:
    change, expected = CHANGES[name]
    manifest, members = read(good)
    change(manifest, members)
    path = write(tmp_path / "bad.zip", manifest, members)

    assert expected in str(refused(path, tmp_path / "place"))


def test_members_are_not_what_the_manifest_says(good: Path, tmp_path: Path) -> None:
    manifest, members = read(good)
    name = "files/checkpoints/job_1/ckpt_1.zip"
    members[name] = b"weighty"
    same_size = write(tmp_path / "1.zip", manifest, members, honest=False)
    assert "is not what its manifest says" in str(refused(same_size, tmp_path / "a"))
    members[name] = b"\0" * 10**7
    bomb = write(tmp_path / "2.zip", manifest, members, honest=False)
    assert "has not the size" in str(refused(bomb, tmp_path / "b"))
    members[name] = b"weights"
    members["files/logs/extra"] = b""
    more = write(tmp_path / "3.zip", manifest, members, honest=False)
    assert "differ about 'files/logs/extra'" in str(refused(more, tmp_path / "c"))


def test_a_bomb_is_refused_before_it_is_unpacked(good: Path, tmp_path: Path) -> None:
    manifest, members = read(good)
    path = write(tmp_path / "bomb.zip", manifest, members)
    # Honest about its size in both places, which no disk has.
    content = bytearray(path.read_bytes())
    name = b"files/checkpoints/job_1/ckpt_1.zip"
    at = content.rindex(name) - 46
    assert content[at : at + 4] == b"PK\x01\x02"
    content[at + 24 : at + 28] = (2**32 - 2).to_bytes(4, "little")
    path.write_bytes(content)
    assert "has not the size" in str(refused(path, tmp_path / "a"))

    manifest["members"][name.decode()]["size"] = 2**60
    members.pop(name.decode())
    with zipfile.ZipFile(tmp_path / "large.zip", "w") as archive:
        for member, one in members.items():
            archive.writestr(member, one)
        archive.writestr(_sized(name.decode(), 2**60), b"")
        archive.writestr("manifest.json", json.dumps(manifest))
        archive.getinfo(name.decode()).file_size = 2**60
    assert "are free" in str(refused(tmp_path / "large.zip", tmp_path / "b"))


def _sized(name: str, size: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.file_size = size
    return info


@pytest.mark.parametrize("mode", [stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO, stat.S_IFCHR])
def test_a_link_or_device_is_refused(good: Path, tmp_path: Path, mode: int) -> None:
    manifest, members = read(good)
    members["files/logs/link"] = b"/etc/passwd"
    write(tmp_path / "good.zip", manifest, members)
    path = tmp_path / "bad.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, one in members.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = ((mode if name.endswith("link") else stat.S_IFREG) | 0o777) << 16
            archive.writestr(info, one)
        archive.writestr("manifest.json", json.dumps(manifest))

    assert "'files/logs/link' is no file" in str(refused(path, tmp_path / "place"))


def test_two_members_of_one_name_are_refused(good: Path, tmp_path: Path) -> None:
    manifest, members = read(good)
    path = write(tmp_path / "twice.zip", manifest, members)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("files/server.key", b"mine")

    assert "two members of one name" in str(refused(path, tmp_path / "place"))


def test_an_archive_cut_off_anywhere_is_refused(good: Path, tmp_path: Path) -> None:
    content = good.read_bytes()
    path = tmp_path / "cut.zip"
    for length in (0, 3, 1000, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        failure = refused(path, tmp_path / "place")
        assert getattr(failure, "code", None) == "backup_damaged"


def test_no_byte_can_be_changed_unseen(good: Path, tmp_path: Path) -> None:
    content = good.read_bytes()
    path = tmp_path / "changed.zip"
    manifest, members = read(good)
    # Everywhere now and then, and each bit of where the members are listed.
    listed = range(content.index(b"PK\x01\x02"), len(content))
    flips = [(at, 0x10) for at in range(7, len(content), len(content) // 400)]
    flips += [(at, 1 << bit) for at in listed for bit in range(8)][:: max(len(listed) // 100, 1)]
    for at, bit in flips:
        path.write_bytes(content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :])
        try:
            with ArchiveReader(path) as archive:
                found = {name: b"".join(archive.read(name)) for name in archive.members}
        except (RLEaaSError, ConfigurationError):
            continue
        # Times and modes of members are the only bytes that mean nothing here.
        assert (archive.manifest, found) == (manifest, members)


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.zip").write_text("hello")
    assert "not a whole archive" in str(refused(tmp_path / "text.zip", tmp_path / "a"))
    missing = refused(tmp_path / "none.zip", tmp_path / "b")
    assert isinstance(missing, ConfigurationError)
    with zipfile.ZipFile(tmp_path / "empty.zip", "w"):
        pass
    assert "manifest" in str(refused(tmp_path / "empty.zip", tmp_path / "c"))


def test_a_broken_chain_is_taken_up_only_when_that_is_asked_for(good: Path, tmp_path: Path) -> None:
    manifest, members = read(good)
    _value("audit_records", "actor", "somebody else")(manifest, members)
    path = write(tmp_path / "broken.zip", manifest, members)
    place = tmp_path / "place"

    done = restore(path, place, place / "rleaas.db", allow_broken_audit=True)

    assert done.audit_problem is not None
    database = Database(place / "rleaas.db")
    with database.read() as session:
        said = session.scalar(select(AuditRow.data).order_by(AuditRow.id.desc()).limit(1))
    database.close()
    assert said is not None
    assert said["audit_problem"] == done.audit_problem


def test_a_damaged_database_is_not_backed_up(good: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    restore(good, place, place / "rleaas.db")
    database = Database(place / "rleaas.db")
    with database.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        root = connection.exec_driver_sql(
            "SELECT rootpage FROM sqlite_master WHERE name = 'environments'"
        ).scalar_one()
        size = connection.exec_driver_sql("PRAGMA page_size").scalar_one()
    database.close()
    with (place / "rleaas.db").open("r+b") as file:
        file.seek((root - 1) * size + size - 40)
        file.write(b"\xff" * 8)
        file.seek((root - 1) * size + 3)
        file.write(b"\xff\xff")

    with pytest.raises(RLEaaSError, match="damaged"):
        backup(place, place / "rleaas.db", tmp_path / "two.zip")
    assert not (tmp_path / "two.zip").exists()
    assert not list(tmp_path.glob(".*.part"))


def test_an_archive_never_replaces_a_file_and_never_stays_half_written(
    good: Path, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    restore(good, place, place / "rleaas.db")
    with pytest.raises(ConfigurationError) as there:
        backup(place, place / "rleaas.db", good)
    assert there.value.code == "backup_exists"
    with pytest.raises(ConfigurationError) as nowhere:
        backup(place, place / "rleaas.db", tmp_path / "no" / "such.zip")
    assert nowhere.value.code == "backup_not_writable"
    with pytest.raises(ConfigurationError) as nothing:
        backup(tmp_path / "empty", tmp_path / "empty" / "rleaas.db", tmp_path / "x.zip")
    assert nothing.value.code == "no_data"


def test_a_lost_file_is_told_and_does_not_keep_the_rest_from_being_restored(
    good: Path, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    restore(good, place, place / "rleaas.db")
    (place / "checkpoints" / "job_1" / "ckpt_1.zip").unlink()
    made = backup(place, place / "rleaas.db", tmp_path / "two.zip")
    done = restore(tmp_path / "two.zip", tmp_path / "b", tmp_path / "b" / "rleaas.db")

    lost = f"files/{member_of(hashlib.sha256(b'weights').hexdigest())}"
    assert made.missing == done.missing == (lost,)


def test_tables_of_a_newer_rleaas_are_left_alone(good: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    restore(good, place, place / "rleaas.db")
    database = Database(place / "rleaas.db")
    with database.write() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))

    with pytest.raises(ConfigurationError) as failure:
        database.migrate()
    database.close()
    assert failure.value.code == "schema_newer"
