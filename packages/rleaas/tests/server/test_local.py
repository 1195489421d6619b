"""A server inside another program, which Ctrl-C may end at any moment."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from rlcore import PlatformTimeout
from rleaas.server import local
from rleaas.server.interrupts import interrupts_held
from rleaas.server.local import LocalServer
from rleaas.server.state import ServerState

EXITING = """
import sys
from pathlib import Path
from rleaas.server.local import LocalServer
from rleaas.server.state import ServerState

class Told(ServerState):
    def stop(self):
        super().stop()
        print("ended with all it started", flush=True)

LocalServer(Path(sys.argv[1]), make_state=Told).start()
"""


def interrupt() -> None:
    ident = threading.main_thread().ident
    assert ident is not None
    signal.pthread_kill(ident, signal.SIGINT)


class Interrupted(ServerState):
    """Ctrl-C comes while its parts are being ended, and they take until they are hurried."""

    ended = False

    def hurry(self) -> None:
        super().hurry()
        hurried.set()

    def stop(self) -> None:
        hurried.clear()
        interrupt()
        assert hurried.wait(10)
        super().stop()
        self.ended = True


hurried = threading.Event()


def test_ctrl_c_while_a_server_ends_hurries_it_and_is_raised_when_it_has_ended(
    tmp_path: Path,
) -> None:
    server = LocalServer(tmp_path, make_state=Interrupted)
    server.start()
    state = server.state
    before = signal.getsignal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        server.stop()

    assert isinstance(state, Interrupted)
    assert state.ended
    assert signal.getsignal(signal.SIGINT) is before
    server.stop()  # there is nothing left to do


def test_a_server_that_hangs_is_left_with_its_processes_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go, hurries = threading.Event(), list[str]()

    class Hanging(ServerState):
        def hurry(self) -> None:
            hurries.append("once")
            super().hurry()

        def stop(self) -> None:
            let_go.wait(30)
            super().stop()

    monkeypatch.setattr(local, "_END_SECONDS", 0.1)
    monkeypatch.setattr(local, "_END_NOW_SECONDS", 0.3)
    server = LocalServer(tmp_path, make_state=Hanging)
    others = set(threading.enumerate())
    server.start()
    started = set(threading.enumerate()) - others
    (thread,) = [one for one in started if one.name == "rleaas-server"]

    with pytest.raises(PlatformTimeout, match=r"did not end within 0\.3 s"):
        server.stop()

    assert len(hurries) == 2  # when it was hurried, and again for what was started meanwhile
    let_go.set()
    thread.join(20)
    assert not thread.is_alive()


def test_a_server_that_nobody_stops_ends_with_its_process(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", EXITING, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert (ran.stdout, ran.stderr, ran.returncode) == ("ended with all it started\n", "", 0)


def test_ctrl_c_that_is_ignored_stays_ignored_while_something_ends() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts_held(lambda: pytest.fail("hurried")):
            interrupt()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
