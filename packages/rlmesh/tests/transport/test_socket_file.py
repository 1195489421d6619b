"""A socket's file is its owner's, and only ever replaces what nobody listens at."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from rlmesh.transport.addresses import UNIX_PATH_LIMIT
from rlmesh.transport.socket_file import SocketFileError, make_socket_file


class Listener:
    """Listens at the path it is given, and writes down what the file's mode was and where."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.bound_at = ""

    def __call__(self, path: str) -> None:
        self.bound_at = path
        self.socket.bind(path)
        self.socket.listen()


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="rlm-") as made:
        yield Path(made)


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.socket.close()


def answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except ConnectionRefusedError:
            return False
        return True


def make_stale(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))
        one.listen()
    assert not answers(path)


def test_the_file_is_only_for_its_owner_whatever_the_umask(
    folder: Path, listener: Listener
) -> None:
    before = os.umask(0)
    try:
        made = make_socket_file(str(folder / "env.sock"), listener)
        assert os.umask(0) == 0, "the process's umask was changed"
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / "env.sock").stat().st_mode) == 0o600
    assert answers(folder / "env.sock")
    assert [path.name for path in folder.iterdir()] == ["env.sock"]
    made.remove()
    assert list(folder.iterdir()) == []


def test_until_it_is_for_its_owner_nobody_else_can_reach_it(folder: Path) -> None:
    seen: list[int] = []
    with socket.socket(socket.AF_UNIX) as one:

        def bind(path: str) -> None:
            one.bind(path)
            seen.append(stat.S_IMODE(Path(path).parent.stat().st_mode))
            assert not (folder / "env.sock").exists()

        make_socket_file(str(folder / "env.sock"), bind)
    assert seen == [0o700]


def test_a_file_that_nobody_listens_at_is_replaced(folder: Path, listener: Listener) -> None:
    make_stale(folder / "env.sock")
    make_socket_file(str(folder / "env.sock"), listener)
    assert answers(folder / "env.sock")


def test_a_live_socket_is_left_alone(folder: Path, listener: Listener) -> None:
    path = folder / "env.sock"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        inode = path.lstat().st_ino
        with pytest.raises(SocketFileError, match="another server is listening"):
            make_socket_file(str(path), listener)
        assert path.lstat().st_ino == inode
        assert answers(path)


def test_a_busy_socket_is_left_alone(folder: Path, listener: Listener) -> None:
    path = folder / "env.sock"
    with contextlib.ExitStack() as stack:
        other = stack.enter_context(socket.socket(socket.AF_UNIX))
        other.bind(str(path))
        other.listen(0)
        waiting = stack.enter_context(socket.socket(socket.AF_UNIX))
        waiting.connect(str(path))
        with pytest.raises(SocketFileError, match="another server is listening"):
            make_socket_file(str(path), listener)
        assert path.is_socket()


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_what_is_no_socket_is_left_alone(folder: Path, listener: Listener, kind: str) -> None:
    path = folder / "env.sock"
    if kind == "file":
        path.write_text("precious")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(folder / "elsewhere")
    with pytest.raises(SocketFileError, match="it is not a socket"):
        make_socket_file(str(path), listener)
    assert path.is_symlink() if kind == "link" else path.exists()
    assert [one.name for one in folder.iterdir()] == ["env.sock"]


def test_of_servers_that_start_at_once_exactly_one_wins(folder: Path) -> None:
    path = folder / "env.sock"
    make_stale(path)
    for _ in range(20):
        start = threading.Barrier(6)
        won: list[Listener] = []
        lost: list[str] = []

        def run(start: threading.Barrier, won: list[Listener], lost: list[str]) -> None:
            one = Listener()
            start.wait(10)
            try:
                make_socket_file(str(path), one)
            except SocketFileError as error:
                one.socket.close()
                lost.append(str(error))
            else:
                won.append(one)

        threads = [threading.Thread(target=run, args=(start, won, lost)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert len(won) == 1, lost
        assert lost == ["another server is listening there"] * 5
        assert answers(path)
        assert [one.name for one in folder.iterdir()] == ["env.sock"]
        won[0].socket.close()  # the next round finds its file


def test_only_its_own_file_is_removed(folder: Path, listener: Listener) -> None:
    path = folder / "env.sock"
    first = make_socket_file(str(path), listener)
    listener.socket.close()
    successor = Listener()
    second = make_socket_file(str(path), successor)
    first.remove()
    assert answers(path)
    second.remove()
    assert not path.exists()
    second.remove()
    successor.socket.close()


def test_a_file_that_is_gone_is_not_missed(folder: Path, listener: Listener) -> None:
    made = make_socket_file(str(folder / "env.sock"), listener)
    (folder / "env.sock").unlink()
    made.remove()


@pytest.mark.parametrize("name", ["a b%41#?.sock", "x" * 60 + ".sock"])
def test_any_path_that_fits_can_be_taken(folder: Path, listener: Listener, name: str) -> None:
    path = folder / name.rjust(UNIX_PATH_LIMIT - len(str(folder)) - 1, "_")
    assert len(str(path)) == UNIX_PATH_LIMIT
    make_socket_file(str(path), listener)
    assert len(listener.bound_at) <= UNIX_PATH_LIMIT
    assert answers(path)


def test_the_systems_list_of_sockets_shows_the_path_at_the_end(
    folder: Path, listener: Listener
) -> None:
    path = folder / "env.sock"
    make_socket_file(str(path), listener)
    listed = [line.split()[-1] for line in Path("/proc/net/unix").read_text().splitlines()]
    assert any(name.endswith(str(path)) for name in listed)


def test_a_deep_folder_can_be_bound_in(folder: Path, listener: Listener) -> None:
    deep = folder / ("d" * (UNIX_PATH_LIMIT - len(str(folder)) - 5))
    deep.mkdir()
    make_socket_file(str(deep / "s"), listener)
    assert answers(deep / "s")
    assert [one.name for one in deep.iterdir()] == ["s"]


def test_a_folder_that_is_not_there_or_not_writable_is_named(
    folder: Path, listener: Listener
) -> None:
    with pytest.raises(SocketFileError, match=r"the folder '.*/none' does not exist"):
        make_socket_file(str(folder / "none" / "s"), listener)
    with pytest.raises(SocketFileError, match="does not exist"):
        make_socket_file("/proc/self/none/s", listener)


def test_a_bind_that_fails_leaves_nothing_behind(folder: Path) -> None:
    def bind(path: str) -> None:
        raise SocketFileError("it could not be bound")

    with pytest.raises(SocketFileError, match="could not be bound"):
        make_socket_file(str(folder / "env.sock"), bind)
    assert list(folder.iterdir()) == []
