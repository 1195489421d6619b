"""Who gets a unix socket's path, from the first moment to the last."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rlcore import AddressError, BindError
from rlmesh.numpy import RemoteEnv
from rlmesh.server.env_server import EnvServer
from rlmesh.transport.addresses import UNIX_PATH_LIMIT

Serve = Callable[..., EnvServer]


def test_a_server_that_was_not_started_yet_has_its_path(scripted: Any, folder: Path) -> None:
    first = EnvServer(scripted(), f"unix://{folder}/env.sock")
    with pytest.raises(BindError, match="another server is listening there"):
        EnvServer(scripted(), f"unix://{folder}/env.sock")
    with first, RemoteEnv(first) as env:
        env.reset()
    assert list(folder.iterdir()) == []


def test_of_servers_that_start_at_once_on_a_stale_path_one_serves(
    scripted: Any, folder: Path
) -> None:
    path = folder / "env.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    start, won, lost = threading.Barrier(4), list[EnvServer](), list[BindError]()

    def run() -> None:
        start.wait(10)
        try:
            won.append(EnvServer(scripted(), f"unix://{path}"))
        except BindError as error:
            lost.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (len(won), len(lost)) == (1, 3)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with won[0], RemoteEnv(won[0]) as env:
        env.reset()
    assert not path.exists()


def test_a_killed_servers_path_is_taken_over(folder: Path, scripted: Any, serve: Serve) -> None:
    place = f"unix://{folder}/env.sock"
    command = [sys.executable, "-m", "rlmesh.serve", "CartPole-v1", "--address", place]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip().endswith(place)
        with pytest.raises(BindError, match="another server is listening there"):
            EnvServer(scripted(), place)
        process.send_signal(signal.SIGKILL)
        process.wait(20)
    assert (folder / "env.sock").is_socket()
    with RemoteEnv(serve(scripted(), place)) as env:
        env.reset()


def test_a_server_leaves_its_successors_file_alone(scripted: Any, folder: Path) -> None:
    path = folder / "env.sock"
    first = EnvServer(scripted(), f"unix://{path}")
    first.start()
    path.unlink()
    with EnvServer(scripted(), f"unix://{path}") as second:
        inode = path.stat().st_ino
        first.shutdown()
        assert path.stat().st_ino == inode
        with RemoteEnv(second) as env:
            env.reset()


@pytest.mark.parametrize("name", ["a b%41#?&=é.sock", "." + "x" * 60])
def test_any_characters_can_be_in_a_path(
    serve: Serve, scripted: Any, folder: Path, name: str
) -> None:
    server = serve(scripted(), f"unix://{folder}/{name}")
    for lane in ("grpc", "local"):
        with RemoteEnv(server, lane=lane) as env:
            env.reset()


def test_a_path_that_is_too_long_is_named(scripted: Any, folder: Path) -> None:
    long = f"{folder}/{'x' * UNIX_PATH_LIMIT}"
    with pytest.raises(AddressError, match=f"longer than {UNIX_PATH_LIMIT} bytes"):
        EnvServer(scripted(), f"unix://{long}")


def test_no_other_thread_sees_another_umask(scripted: Any, folder: Path) -> None:
    before = os.umask(0o022)
    try:
        EnvServer(scripted(), f"unix://{folder}/env.sock").shutdown()
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)
