"""Attack a server for minutes, and see that it lives, answers its good clients and stays small.

    python packages/rlmesh/fuzz/fuzz_server.py --seconds 600 --seed 1

Two servers are started, each in a process of its own: one in the clear, one with TLS and a token.
The attacks of all tables run against them in threads. Meanwhile a good client plays episodes on
each. Exit code 0: no server ended, no good client was disturbed, every bad message got a clean
answer, memory, threads and descriptors came back to what they were, and no traceback was logged.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from fuzz_calls import CALLS
from fuzz_frames import FRAMES
from fuzz_sockets import SOCKETS
from fuzz_table import Attack, Target, TurnedAway, Unclean
from fuzz_world import MESSAGE_LIMIT, SESSIONS, TOKEN
from rlcore import SessionBusy
from rlmesh.numpy import RemoteEnv

HERE = Path(__file__).parent
ATTACKS: Sequence[Attack] = (*CALLS, *SOCKETS, *FRAMES)
ANSWER_SECONDS = 20.0
SETTLE_SECONDS = 3.0
COOL_DOWN_SECONDS = 60.0
EPISODE_STEPS = 20
MIB = 2**20
LOG_LIMIT = MIB
# Beyond what the first round of all attacks left behind.
SPARE_THREADS = 16
SPARE_DESCRIPTORS = 32


class Served:
    """A server in a process of its own."""

    def __init__(self, kind: str, isolation: str) -> None:
        self.kind = kind
        self.log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the server
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "fuzz_world.py"), kind, isolation],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
        )
        assert self.process.stdout is not None
        address, _, fingerprint = self.process.stdout.readline().decode().strip().partition(" ")
        if not address:
            self.process.wait()
            raise SystemExit(f"the {kind} server did not start: {self.said()}")
        host, _, port = address.removeprefix("tcp://").partition(":")
        self.address = address
        self.target = Target(
            host,
            int(port),
            MESSAGE_LIMIT,
            SESSIONS,
            TOKEN if fingerprint else None,
            fingerprint or None,
        )
        self.peak = 0

    def memory(self) -> int:
        """Return the bytes of memory that the process has."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        size = pages * os.sysconf("SC_PAGE_SIZE")
        self.peak = max(self.peak, size)
        return size

    def threads(self) -> int:
        """Return how many threads the process has."""
        return len(list(Path(f"/proc/{self.process.pid}/task").iterdir()))

    def descriptors(self) -> int:
        """Return how many files and sockets the process has open."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def said(self) -> str:
        """Return what the process wrote to standard error."""
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def stop(self) -> int:
        """End the process in good order and return its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            assert self.process.stdout is not None
            self.process.stdout.close()


class GoodClient(threading.Thread):
    """Plays episodes all the time and checks every answer."""

    def __init__(self, served: Served, ended: threading.Event) -> None:
        super().__init__(name=f"good client of {served.kind}", daemon=True)
        self.served = served
        self.ended = ended
        self.episodes = self.steps = self.busy = 0
        self.slowest = 0.0
        self.failure: str | None = None

    def run(self) -> None:
        """Play until the end, or until something is wrong."""
        try:
            while not self.ended.is_set():
                self._visit()
        except Exception:
            self.failure = traceback.format_exc()

    def _visit(self) -> None:
        target = self.served.target
        with RemoteEnv(
            self.served.address,
            token=target.token,
            tls=target.fingerprint or False,
            connect_timeout_seconds=ANSWER_SECONDS,
            request_timeout_seconds=ANSWER_SECONDS,
            wait_for_server_seconds=ANSWER_SECONDS,
        ) as env:
            for _ in range(3):
                if self.ended.is_set():
                    return
                try:
                    self._play(env)
                except SessionBusy:
                    # All places were taken by those who ask for many; there is one again soon.
                    self.busy += 1
                    self.ended.wait(0.05)

    def _play(self, env: Any) -> None:
        seed = random.randrange(2**31)
        observation, info = self._timed(env.reset, seed=seed, options={"a": [1, "b"]})
        _must(observation["count"].tolist() == [0, seed], "the first observation is another's")
        _must(info["options"] == {"a": [1, "b"]}, "the options came back changed")
        for step in range(1, EPISODE_STEPS + 1):
            action = env.action_space.sample()
            observation, reward, *_ = self._timed(env.step, action)
            _must(observation["count"].tolist() == [step, -1], "an observation is another's")
            _must(reward == step, "a reward is another's")
            _must(bool(np.all(observation["image"] == step % 256)), "an image is another's")
            self.steps += 1
        self.episodes += 1

    def _timed(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        started = time.monotonic()
        answer = call(*arguments, **named)
        self.slowest = max(self.slowest, time.monotonic() - started)
        return answer


class Report:
    """What happened, by attack."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Counter[str]] = {}
        self.unclean: list[str] = []
        self._lock = threading.Lock()

    def add(self, attack: Attack, outcome: str) -> None:
        """Count one outcome."""
        with self._lock:
            self.outcomes.setdefault(attack.name, Counter())[outcome] += 1

    def complain(self, attack: Attack, seed: int, what: str) -> None:
        """Remember an answer that is not clean, and how to get it again."""
        with self._lock:
            self.outcomes.setdefault(attack.name, Counter())["UNCLEAN"] += 1
            self.unclean.append(f"{attack.name} (--only {attack.name!r} --seed {seed}): {what}")

    def print(self) -> None:
        """Print one line for each attack."""
        width = max(map(len, self.outcomes), default=0)
        for name in sorted(self.outcomes):
            counted = ", ".join(f"{what} {n}" for what, n in self.outcomes[name].most_common())
            write(f"{name.ljust(width)}  {self.outcomes[name].total():6}  {counted}")


def attack_once(attack: Attack, servers: dict[bool, Served], seed: int, report: Report) -> None:
    """Run one attack and write down how it ended."""
    try:
        outcome = patiently(attack, servers[attack.guarded].target, seed)
    except Unclean as error:
        report.complain(attack, seed, str(error))
    except Exception:
        report.complain(attack, seed, traceback.format_exc())
    else:
        report.add(attack, outcome)


def patiently(attack: Attack, target: Target, seed: int) -> str:
    """Run an attack, again where the server was too busy with the other attacks."""
    for pause in (0.1, 0.3, 1.0, 3.0):
        try:
            return attack.run(target, random.Random(seed))
        except TurnedAway:
            time.sleep(pause)
    try:
        return attack.run(target, random.Random(seed))
    except TurnedAway as error:
        raise Unclean(f"turned away again and again: {error}") from error


def run(options: argparse.Namespace) -> int:
    """Attack, watch, report, and return the exit code."""
    attacks = [one for one in ATTACKS if options.only is None or one.name == options.only]
    if not attacks:
        raise SystemExit(f"there is no attack {options.only!r}")
    servers = {
        guarded: Served("guarded" if guarded else "plain", options.isolation)
        for guarded in (False, True)
    }
    report, ended, problems = Report(), threading.Event(), list[str]()
    try:
        clients = [GoodClient(served, ended) for served in servers.values()]
        for client in clients:
            client.start()
        if options.only is not None:
            attack_once(attacks[0], servers, options.seed, report)
        for attack in attacks:
            attack_once(attack, servers, options.seed, report)
        _cool_down(servers, None)
        before = {kind: _size(served) for kind, served in servers.items()}
        write(f"after one round of {len(attacks)} attacks: {_sizes(servers)}")
        _attack_in_threads(attacks, servers, options, report, clients)
        ended.set()
        for client in clients:
            client.join(2 * ANSWER_SECONDS)
            problems += _problems_of_client(client)
        _cool_down(servers, before)
        write(f"at the end: {_sizes(servers)}")
        for kind, served in servers.items():
            problems += _problems_of_server(served, before[kind], options)
    finally:
        ended.set()
        codes = {served.kind: served.stop() for served in servers.values()}
    problems += [f"the {kind} server ended with {code}" for kind, code in codes.items() if code]
    problems += report.unclean
    report.print()
    for problem in problems:
        write(f"PROBLEM: {problem}")
    runs = sum(counted.total() for counted in report.outcomes.values())
    write(f"{runs} attacks, {len(problems)} problems, seed {options.seed}")
    return 1 if problems else 0


def _attack_in_threads(
    attacks: Sequence[Attack],
    servers: dict[bool, Served],
    options: argparse.Namespace,
    report: Report,
    clients: Sequence[GoodClient],
) -> None:
    deadline = time.monotonic() + options.seconds

    def go_on() -> bool:
        alive = all(served.process.poll() is None for served in servers.values())
        return alive and time.monotonic() < deadline and not any(one.failure for one in clients)

    def attacker(seed: int) -> None:
        chance = random.Random(seed)
        while go_on():
            attack_once(chance.choice(attacks), servers, chance.randrange(2**32), report)

    threads = [
        threading.Thread(target=attacker, args=(options.seed + index,), daemon=True)
        for index in range(options.attackers)
    ]
    for thread in threads:
        thread.start()
    told = time.monotonic()
    while go_on():
        time.sleep(0.5)
        for served in servers.values():
            if served.process.poll() is None:
                served.memory()
        if time.monotonic() - told > 30:
            told = time.monotonic()
            write(f"{deadline - told:.0f} s to go: {_sizes(servers)}")
    for thread in threads:
        thread.join(4 * ANSWER_SECONDS)


def _cool_down(
    servers: dict[bool, Served], before: dict[bool, tuple[int, int, int]] | None
) -> None:
    """Wait until what attackers left behind has gone, or should have."""
    patience = time.monotonic() + (SETTLE_SECONDS if before is None else COOL_DOWN_SECONDS)
    while time.monotonic() < patience:
        time.sleep(0.5)
        if before is not None and not any(
            _leaks(served, before[kind]) for kind, served in servers.items()
        ):
            return


def _size(served: Served) -> tuple[int, int, int]:
    return served.memory(), served.threads(), served.descriptors()


def _sizes(servers: dict[bool, Served]) -> str:
    return "; ".join(
        f"{served.kind} {served.memory() // MIB} MiB (peak {served.peak // MIB}), "
        f"{served.threads()} threads, {served.descriptors()} descriptors"
        for served in servers.values()
        if served.process.poll() is None
    )


def _leaks(served: Served, before: tuple[int, int, int]) -> list[str]:
    if served.process.poll() is not None:
        return []
    _, threads, descriptors = _size(served)
    found: list[str] = []
    if threads > before[1] + SPARE_THREADS:
        found.append(f"the {served.kind} server has {threads} threads, it had {before[1]}")
    if descriptors > before[2] + SPARE_DESCRIPTORS:
        found.append(f"the {served.kind} server has {descriptors} descriptors, it had {before[2]}")
    return found


def _problems_of_client(client: GoodClient) -> list[str]:
    write(
        f"{client.name}: {client.episodes} episodes, {client.steps} steps, slowest answer "
        f"{client.slowest:.2f} s, no place {client.busy} times"
    )
    problems = [] if client.failure is None else [f"{client.name}: {client.failure}"]
    if client.is_alive():
        problems.append(f"{client.name} hangs")
    if client.episodes == 0:
        problems.append(f"{client.name} finished no episode")
    return problems


def _problems_of_server(
    served: Served, before: tuple[int, int, int], options: argparse.Namespace
) -> list[str]:
    said = served.said()
    problems = _leaks(served, before)
    if served.process.poll() is not None:
        problems.append(f"the {served.kind} server ended: {said[-2000:]}")
        return problems
    grown = served.memory() - before[0]
    if grown > options.growth_mib * MIB:
        problems.append(f"the {served.kind} server grew by {grown // MIB} MiB")
    if served.peak > options.peak_mib * MIB:
        problems.append(f"the {served.kind} server took {served.peak // MIB} MiB at its peak")
    if "Traceback" in said:
        at = said.index("Traceback")
        problems.append(f"the {served.kind} server logged a traceback:\n{said[at : at + 3000]}")
    if len(said) > LOG_LIMIT:
        problems.append(f"the {served.kind} server logged {len(said)} characters")
    return problems


def _must(fact: bool, otherwise: str) -> None:
    if not fact:
        raise AssertionError(otherwise)


def write(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(argv: Sequence[str] | None = None) -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="Attack a server, and see that it stays well.")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long (600)")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers (0)")
    parser.add_argument("--attackers", type=int, default=2, help="threads that attack (2)")
    parser.add_argument("--only", help="run one attack alone; --seed is then its own")
    parser.add_argument(
        "--isolation", choices=("thread", "process"), default="thread", help="of sessions (thread)"
    )
    parser.add_argument("--growth-mib", type=int, default=192, help="memory that may stay (192)")
    parser.add_argument("--peak-mib", type=int, default=1024, help="memory in between (1024)")
    return run(parser.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
