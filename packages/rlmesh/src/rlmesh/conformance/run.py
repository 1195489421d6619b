"""Checks an environment, and reports."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rlcore import ConfigurationError, Error

from rlmesh.client.options import ConnectOptions
from rlmesh.conformance.catalogue import CHECKS, Check, selected
from rlmesh.conformance.evidence import Evidence, Unseen
from rlmesh.conformance.subject import subject_of
from rlmesh.conformance.verdicts import Finding, Report, failed, skipped
from rlmesh.conformance.watching import Watcher
from rlmesh.specs import UNKNOWN_ID, EnvContract

SEEDS: Final = (0, 1, 2)
STEPS: Final = 200
TIMEOUT: Final = 30.0


def check(
    target: object,
    *,
    seeds: Sequence[int] = SEEDS,
    steps: int = STEPS,
    timeout: float = TIMEOUT,
    only: Iterable[str] = (),
    skip: Iterable[str] = (),
    connect: ConnectOptions | None = None,
    watcher: Watcher | None = None,
) -> Report:
    """Check whether an environment keeps the promises of the Gymnasium interface.

    It is played with seeded samples of its action space, several times over, in one instance after
    another, in threads, in another process, and, where it is served, over the wire. While it is
    checked, warnings are caught: they become the finding `warnings`.

    Args:
        target: an address (`tcp://`, `unix://`, `rleaas://`), an `Endpoint` or a server; a
            gymnasium id; `module:attribute`; a factory; or an environment, which is not closed.
        seeds: of the plays.
        steps: of each play.
        timeout: how many seconds one call may take; what takes longer fails `in_time`.
        only: the names of the checks to perform; empty: all.
        skip: the names of checks to leave out.
        connect: how a served environment is reached, as `RemoteEnv` takes it: `token`, `tls`,
            `lane`, `wait_for_server_seconds`.
        watcher: hears how it goes on.

    Returns:
        One finding for each check that is about such an environment.

    Raises:
        ConfigurationError: the target means nothing, or an argument makes no sense.
        EnvironmentException: the environment cannot be made.
        TransportError: nothing answers at the address.
    """
    names = selected(only, skip)
    numbers = _checked(seeds, steps, timeout)
    watcher = watcher or Watcher()
    began = time.monotonic()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        evidence = Evidence(
            subject_of(target, seconds=timeout, connect=connect),
            seeds=numbers,
            steps=steps,
            seconds=timeout,
            watcher=watcher,
            names=names,
            caught=caught,
        )
        _ = evidence.first  # what cannot be had at all is no finding
        contract = evidence.first.contract
        known = contract if isinstance(contract, EnvContract) else None
        environment = name = evidence.subject.name
        if known is not None and known.id != UNKNOWN_ID:
            environment = known.id
        digest = None if known is None else known.digest
        names = tuple(name for name in names if _is_about(CHECKS[name], evidence))
        watcher.about(environment, digest, names)
        if evidence.first.unread is None:
            findings = list(_findings(names, evidence, watcher))
        else:
            findings = _unreadable(names, evidence.first.unread)
    return Report(
        target=name,
        environment=environment,
        digest=digest,
        seeds=numbers,
        steps=steps,
        seconds=round(time.monotonic() - began, 3),
        findings=tuple(findings),
    )


def _findings(names: tuple[str, ...], evidence: Evidence, watcher: Watcher) -> Iterator[Finding]:
    for name in names:
        watcher.judging(name)
        finding = _finding(CHECKS[name], evidence).named(name)
        watcher.found(finding)
        yield finding


def _unreadable(names: tuple[str, ...], error: Error) -> list[Finding]:
    """Return the findings about what does not even say what it is: that it does not comes first."""
    first = "contract"
    fix = "Let spaces, metadata and render_mode be read without raising."
    found = [failed(error.message, fix).named(first)]
    why = f"it could not be played; see {first}"
    return found + [skipped(why).named(name) for name in names if name != first]


def _finding(check: Check, evidence: Evidence) -> Finding:
    try:
        return check.judge(evidence)
    except Unseen as reason:
        return skipped(str(reason))


def _is_about(check: Check, evidence: Evidence) -> bool:
    served = evidence.subject.address is not None
    face = evidence.first.face
    match check.kind:
        case "all":
            return True
        case "lanes":
            return face is not None and face.lanes is not None
        case "served":
            return served
        case "local":
            return not served


def _checked(seeds: Sequence[int], steps: int, timeout: float) -> tuple[int, ...]:
    numbers = tuple(seeds)
    if not numbers or any(not 0 <= seed < 2**31 for seed in numbers):
        raise ConfigurationError(
            f"the seeds are {list(numbers)}", hint="Give one at least, each from 0 to 2**31 - 1."
        )
    if len(set(numbers)) < len(numbers):
        raise ConfigurationError(f"the seeds {list(numbers)} repeat", hint="Give each seed once.")
    if steps < 1:
        raise ConfigurationError(f"steps is {steps!r}", hint="Play one step at least.")
    if not timeout > 0:
        raise ConfigurationError(f"timeout is {timeout!r}", hint="Give more than 0 seconds.")
    return numbers
