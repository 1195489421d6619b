"""Servers that nobody shuts down."""

from __future__ import annotations

import gc
from pathlib import Path

from rlmesh.transport.addresses import TcpAddress
from rlmesh.transport.frame_listeners import Listeners


def test_what_listens_for_lanes_goes_with_the_last_reference() -> None:
    listeners = Listeners(TcpAddress("127.0.0.1", 0), 0)
    path = listeners.path
    assert path is not None
    folder = Path(path).parent
    assert folder.exists()
    sockets = [*listeners.sockets]
    del listeners
    gc.collect()
    assert [one.fileno() for one in sockets] == [-1, -1]
    assert not folder.exists()
