"""Connections that come while a server stops are closed with it."""

from __future__ import annotations

import contextlib
import gc
import socket
import threading
import warnings
from pathlib import Path

from rleaas.server.local import LocalServer


def test_what_connects_in_the_last_moment_is_closed_with_the_server(tmp_path: Path) -> None:
    stopped, knocked = threading.Event(), threading.Barrier(4, timeout=20)

    def knock(port: int) -> None:
        heard = False
        while not stopped.is_set():
            with (
                contextlib.suppress(OSError),  # it has gone
                socket.create_connection(("127.0.0.1", port), 1),
            ):
                if not heard:
                    heard = True
                    knocked.wait()

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ResourceWarning)
        with LocalServer(tmp_path) as server:
            port = int(server.url.rsplit(":", 1)[1])
            callers = [threading.Thread(target=knock, args=(port,)) for _ in range(3)]
            for caller in callers:
                caller.start()
            knocked.wait()
        stopped.set()
        for caller in callers:
            caller.join(20)
        gc.collect()

    assert [str(one.message) for one in warned] == []
