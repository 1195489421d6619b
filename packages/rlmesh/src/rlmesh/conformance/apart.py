"""Checks an environment in a process of its own, and outlives it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Final

from rlcore import Error

from rlmesh.conformance.aside import About, Calling, Judging, Order, Told
from rlmesh.conformance.catalogue import CHECKS, selected
from rlmesh.conformance.keeper import GLANCE_SECONDS
from rlmesh.conformance.lives import AFTER_END, ILLEGAL
from rlmesh.conformance.run import SEEDS, STEPS, TIMEOUT
from rlmesh.conformance.verdicts import Finding, Place, Report, failed, skipped

# Beyond the patience with one call, before a call that no thread can interrupt ends the process.
GRACE_SECONDS: Final = 60.0
_START: Final = "from rlmesh.conformance.aside import main; main()"
LEAVE_SECONDS: Final = 10.0
PLAYS: Final = "plays"
# Calls that only one check makes: where one of them ends the process, the others go on without it.
PROVOKED: Final = {ILLEGAL: "illegal_action", AFTER_END: "after_end"}
_PLACE: Final = re.compile(
    r"(?:step (?P<step>\d+) after )?reset\(seed=(?P<seed>\d+)\)"
    r"(?:, action_space\.seed\((?P<actions>\d+)\))?"
)


@dataclass(slots=True)
class Heard:
    """What the process has told until it ended.

    Attributes:
        what: the last call.
        judging: the last check that began.
        findings: those that were complete.
        end: the report, or why there is none; None where the process just ended.
    """

    what: str = "importing it"
    judging: str = PLAYS
    about: About | None = None
    findings: list[Finding] = field(default_factory=list[Finding])
    end: Report | Error | None = None

    def take(self, told: Told) -> None:
        """Take in what was told."""
        match told:
            case Calling():
                self.what = told.what
            case Judging():
                self.judging = told.name
            case About():
                self.about = told
            case Finding():
                self.findings.append(told)
            case _:
                self.end = told


def check_apart(
    target: str,
    *,
    seeds: Sequence[int] = SEEDS,
    steps: int = STEPS,
    timeout: float = TIMEOUT,
    only: Iterable[str] = (),
    skip: Iterable[str] = (),
    grace: float = GRACE_SECONDS,
) -> Report:
    """Check an environment in a process of its own: one that exits or crashes is reported as well.

    Whatever it prints goes to standard error.

    Args:
        target: a gymnasium id or `module:attribute`.
        seeds: as `check` takes them, and so are `steps`, `timeout`, `only` and `skip`.
        steps: see there.
        timeout: see there.
        only: see there.
        skip: see there.
        grace: how many seconds beyond `timeout` a call may hold the interpreter, so that nothing
            else in the process runs, before that process is ended.

    Returns:
        The report of `check`. Where the environment has ended the process, `plays` or the check
        that was under way has failed, and what could not be seen any more is skipped.

    Raises:
        Error: what `check` raises.
    """
    began = time.monotonic()
    only, skip = tuple(only), tuple(skip)
    names = selected(only, skip)
    order = Order(target, tuple(sys.path), tuple(seeds), steps, timeout, only, skip, grace)
    lost: list[Finding] = []
    while True:
        heard, ending = _hear(order)
        if isinstance(heard.end, Error):
            raise heard.end
        if heard.end is not None:
            break
        name = PROVOKED.get(heard.what)
        finding = _ended(heard, ending)
        if name is None or name in order.skip:
            heard.end = _broken_off(order, names, heard, finding)
            break
        lost.append(finding.named(name))
        order = replace(order, skip=(*order.skip, name))
    place = {name: at for at, name in enumerate(CHECKS)}
    findings = sorted((*heard.end.findings, *lost), key=lambda one: place[one.name])
    seconds = round(time.monotonic() - began, 3)
    return replace(heard.end, findings=tuple(findings), seconds=seconds)


def _hear(order: Order) -> tuple[Heard, str]:
    """Have it checked; return what was heard, and how the process ended."""
    ours, theirs = Pipe()
    heard = Heard()
    with ours, theirs:
        fd = theirs.fileno()
        process = subprocess.Popen(
            [sys.executable, "-c", _START, str(fd)],
            stdout=_prints(),
            pass_fds=(fd,),
        )
        theirs.close()
        try:
            ours.send(order)
            _listen(ours, process, heard)
            process.wait(LEAVE_SECONDS)
        except (BrokenPipeError, ConnectionResetError):
            process.wait()  # it ended before it had read its order
        except subprocess.TimeoutExpired:
            pass  # a thread that hangs was left behind, or does not let it go
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    return heard, _way(process.returncode)


def _listen(channel: Connection, process: subprocess.Popen[bytes], heard: Heard) -> None:
    while heard.end is None:
        # What the environment has forked may hold the other end open: there need be no end of file.
        over = process.poll() is not None
        if not channel.poll(0 if over else GLANCE_SECONDS):
            if over:
                return
            continue
        try:
            heard.take(channel.recv())
        except (EOFError, ConnectionResetError):
            return


def _ended(heard: Heard, ending: str) -> Finding:
    where = _PLACE.search(heard.what)
    place = None
    if where is not None:
        seed, actions, step = (int(where[name] or 0) for name in ("seed", "actions", "step"))
        place = Place(seed, actions, step)
    return failed(
        f"the process ended ({ending}) in {heard.what}",
        "Let it raise instead; what it wrote to standard error may tell more.",
        place,
    )


def _broken_off(order: Order, names: tuple[str, ...], heard: Heard, finding: Finding) -> Report:
    """Return what is known of an environment that has ended its process."""
    done = {one.name for one in heard.findings}
    name = heard.judging if PLAYS in done else PLAYS
    # Before the environment is known, nobody knows whether it has lanes.
    kinds = ("all", "local")
    about = heard.about or About(
        order.target, None, tuple(one for one in names if CHECKS[one].kind in kinds)
    )
    rest = [
        skipped(f"the process ended before this could be seen; see {name}").named(one)
        for one in about.names
        if one not in done and one != name
    ]
    return Report(
        target=order.target,
        environment=about.environment,
        digest=about.digest,
        seeds=order.seeds,
        steps=order.steps,
        seconds=0.0,
        findings=(*heard.findings, finding.named(name), *rest),
    )


def _way(code: int) -> str:
    if code >= 0:
        return f"exit {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"


def _prints() -> int:
    """Return where standard output goes instead: to standard error, if there is one."""
    try:
        os.fstat(2)
    except OSError:
        return subprocess.DEVNULL
    return 2
