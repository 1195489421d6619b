"""Real terminals: a run in a child process, watched and driven through a pseudo terminal."""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

COLUMNS, ROWS = 60, 20
BEGIN, END = b"\x1b[?1049h", b"\x1b[?1049l"
CELL = re.compile(r"\x1b\[38;2;(\d+);(\d+);(\d+);48;2;(\d+);(\d+);(\d+)m▀".encode())

# Said by the program itself: this process must not fork, as other tests leave threads in it.
AT_TERMINAL = """
import fcntl, signal, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.default_int_handler)
"""

# A world that is as red as its step number, and a run of it: what a viewer is asked for is done.
SCRIPT = """
import sys, time
import numpy as np, gymnasium as gym
from rlmesh.runs.views import open_view
from rlmesh.runs.frames import frame_sources_of
from rlmesh.runs.hooks import StepEvent
from rlmesh.specs import contract_of

class World(gym.Env):
    render_mode = "rgb_array"
    observation_space = gym.spaces.Dict(camera=gym.spaces.Box(0, 255, (8, 16, 3), np.uint8))
    action_space = gym.spaces.Discrete(2)
    at = 0
    def render(self):
        return np.full((16, 32, 3), (self.at % 256, 0, 9), np.uint8)
    def seen(self):
        return {"camera": np.full((8, 16, 3), (0, 77, 0), np.uint8)}

class Context:
    env = World()
    contract = contract_of(env)
    num_envs = 1
    def frame_sources(self):
        return frame_sources_of(self.env, self.contract)

view = open_view("terminal", episodes=9)
context, skipped, episode = Context(), 0, 0
try:
    view.on_run_start(context)
    while not view.control.quit_requested:
        view.on_reset(context.env.seen(), episode=episode, seed=episode)
        context.env.at = 0
        while not view.control.quit_requested:
            context.env.at += 1
            view.on_step(StepEvent(episode, episode, context.env.at - 1, None, 0, 1.0, False, False,
                                   {}, 1.0, 1.0, context.env.seen()))
            if view.control.asked:
                view.control.wait()
                if view.control.take_skip():
                    skipped += 1
                    break
            SPIN
            time.sleep(0.002)
        episode += 1
finally:
    view.close()
print("steps", context.env.at, "skipped", skipped)
"""


class Sitting:
    """A user at a terminal in which a program runs."""

    def __init__(self, spin: str = "pass", **environ: str) -> None:
        self._user, child = os.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.before = termios.tcgetattr(child)
        self.seen = b""
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", AT_TERMINAL + SCRIPT.replace("SPIN", spin)],
            stdin=child,
            stdout=child,
            stderr=child,
            env={**kept, "TERM": "xterm-256color", **environ},
            start_new_session=True,
        )
        self.child = child

    def wait_for(self, seen: Callable[[bytes], object]) -> None:
        """Read until what was seen says so."""
        end = time.monotonic() + 40
        while not seen(self.seen):
            ended = self.process.poll() is not None
            if select.select([self._user], [], [], 0.05)[0]:
                self.seen += os.read(self._user, 65536)
            elif ended or time.monotonic() > end:
                raise AssertionError(words(self.seen)[-3000:])

    def type(self, keys: bytes) -> None:
        """Type, and forget what was seen before."""
        self.seen = b""
        os.write(self._user, keys)

    def end(self) -> int:
        """Read to the end, and return the exit code."""
        self.wait_for(lambda _: self.process.poll() is not None)
        while select.select([self._user], [], [], 0.05)[0]:
            self.seen += os.read(self._user, 65536)
        return self.process.returncode

    @property
    def attributes(self) -> list[Any]:  # Any: what termios calls attributes
        return termios.tcgetattr(self.child)

    def leave(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._user)
        os.close(self.child)


@pytest.fixture
def sit() -> Iterator[Callable[..., Sitting]]:
    made: list[Sitting] = []

    def make(spin: str = "pass", **environ: str) -> Sitting:
        made.append(Sitting(spin, **environ))
        return made[-1]

    yield make
    for one in made:
        one.leave()


def words(seen: bytes) -> str:
    return re.sub(rb"\x1b\[[^a-zA-Z]*[a-zA-Z]", b" ", seen).decode(errors="replace")


def step_told(seen: bytes) -> int | None:
    found = re.findall(r"step (\d+)", words(seen))
    return int(found[-1]) if found else None


def is_told(text: str, seen: bytes) -> bool:
    return text in words(seen)


def is_drawn(seen: bytes) -> bool:
    return bool(CELL.search(seen)) and "step 2" in words(seen)


def given_back(sitting: Sitting) -> bool:
    shows_cursor = sitting.seen.rfind(b"\x1b[?25h") > sitting.seen.rfind(b"\x1b[?25l")
    left = sitting.seen.rfind(END) > sitting.seen.rfind(BEGIN)
    return left and shows_cursor and sitting.attributes == sitting.before


def test_a_run_is_drawn_in_half_blocks_with_its_counts_below(sit: Callable[..., Sitting]) -> None:
    sitting = sit()
    sitting.wait_for(is_drawn)
    assert sitting.seen.count(BEGIN) == 1
    cells = [tuple(map(int, cell)) for cell in CELL.findall(sitting.seen)]
    assert {(cell[1], cell[2], cell[4], cell[5]) for cell in cells} == {(0, 9, 0, 9)}
    assert len({cell[0] for cell in cells}) > 1  # it moves on
    told = words(sitting.seen)
    assert "episode 1 of 9" in told
    assert "arrows: render (1 of 2)" in told
    sitting.type(b"q")
    assert sitting.end() == 0
    assert given_back(sitting)


@pytest.mark.parametrize("key", [b"\x1b", b"\x03"], ids=["Esc", "Ctrl-C"])
def test_the_run_is_ended_by_a_key_and_its_result_is_kept(
    sit: Callable[..., Sitting], key: bytes
) -> None:
    sitting = sit()
    sitting.wait_for(is_drawn)
    sitting.type(key)
    assert sitting.end() == 0
    assert "skipped 0" in words(sitting.seen)
    assert given_back(sitting)


def test_an_episode_is_skipped(sit: Callable[..., Sitting]) -> None:
    sitting = sit()
    sitting.wait_for(is_drawn)
    sitting.type(b"n")
    sitting.wait_for(lambda seen: "episode 2 of 9" in words(seen))
    sitting.type(b"q")
    assert sitting.end() == 0
    assert "skipped 1" in words(sitting.seen)


def test_a_run_is_paused_stepped_and_resumed(sit: Callable[..., Sitting]) -> None:
    sitting = sit()
    sitting.wait_for(is_drawn)
    sitting.type(b" ")
    sitting.wait_for(lambda seen: "paused" in words(seen))
    sitting.type(b"s")
    sitting.wait_for(step_told)
    before = step_told(sitting.seen)
    assert before is not None
    for more in (1, 2, 3):
        sitting.type(b"s")
        sitting.wait_for(step_told)
        assert step_told(sitting.seen) == before + more
    sitting.type(b" ")
    sitting.wait_for(lambda seen: (step_told(seen) or 0) > before + 5)
    sitting.type(b"q")
    assert sitting.end() == 0


def test_another_source_is_chosen(sit: Callable[..., Sitting]) -> None:
    sitting = sit()
    sitting.wait_for(is_drawn)
    for key, shown in (
        (b"\x1b[C", "camera (2 of 2)"),
        (b"\x1b[C", "render (1 of 2)"),
        (b"\x1b[D", "camera (2 of 2)"),
        (b"1", "render (1 of 2)"),
        (b"\t", "camera (2 of 2)"),
    ):
        sitting.type(key)
        sitting.wait_for(partial(is_told, shown))
    sitting.wait_for(lambda seen: (b"0", b"77", b"0") in {cell[:3] for cell in _plain(seen)})
    sitting.type(b"q")
    assert sitting.end() == 0


def _plain(seen: bytes) -> list[tuple[bytes, ...]]:
    return [tuple(part.lstrip(b"0") or b"0" for part in cell) for cell in CELL.findall(seen)]


def test_a_second_interrupt_ends_a_run_that_is_stuck(sit: Callable[..., Sitting]) -> None:
    sitting = sit("if context.env.at == 300: time.sleep(60)")
    sitting.wait_for(lambda seen: step_told(seen) == 300)
    sitting.type(b"\x03")
    sitting.wait_for(lambda seen: "ending" in words(seen))
    assert sitting.process.poll() is None
    sitting.type(b"\x03")
    assert sitting.end() != 0
    assert given_back(sitting)
    assert "KeyboardInterrupt" in words(sitting.seen)


def test_the_terminal_is_given_back_when_the_run_raises(sit: Callable[..., Sitting]) -> None:
    sitting = sit("if context.env.at == 50: raise ValueError('the end')")
    assert sitting.end() == 1
    assert given_back(sitting)
    assert words(sitting.seen).rstrip().endswith("ValueError: the end")


def test_the_terminal_is_given_back_when_nobody_closes_the_viewer(
    sit: Callable[..., Sitting],
) -> None:
    sitting = sit("if context.env.at == 50: view.close = print; sys.exit(3)")
    assert sitting.end() == 3
    assert given_back(sitting)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_terminal_is_given_back_when_the_process_is_ended(
    sit: Callable[..., Sitting], number: signal.Signals
) -> None:
    sitting = sit()
    sitting.wait_for(is_drawn)
    sitting.process.send_signal(number)
    assert sitting.end() == -number
    assert given_back(sitting)


def test_a_resized_terminal_is_drawn_anew(sit: Callable[..., Sitting]) -> None:
    sitting = sit()
    sitting.wait_for(is_drawn)
    fcntl.ioctl(sitting.child, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 30, 0, 0))
    sitting.type(b"")
    sitting.wait_for(lambda seen: b"\x1b[2J" in seen and CELL.search(seen.partition(b"\x1b[2J")[2]))
    after = sitting.seen.partition(b"\x1b[2J")[2]
    assert max(int(row) for row in re.findall(rb"\x1b\[(\d+);1H", after)) <= 12
    sitting.type(b"q")
    assert sitting.end() == 0


@pytest.mark.parametrize(
    ("environ", "image"),
    [
        ({"TERM": "xterm-kitty"}, rb"\x1b_Ga=T,f=24,o=z,s=32,v=16,"),
        ({"TERM_PROGRAM": "iTerm.app"}, rb"\x1b\]1337;File=inline=1;"),
    ],
)
def test_terminals_that_can_are_sent_images(
    sit: Callable[..., Sitting], environ: dict[str, str], image: bytes
) -> None:
    sitting = sit(**environ)
    sitting.wait_for(lambda seen: re.search(image, seen) and "step 2" in words(seen))
    assert not CELL.search(sitting.seen)
    sitting.type(b"q")
    assert sitting.end() == 0
    assert given_back(sitting)


def test_a_terminal_that_reads_nothing_does_not_stop_the_run(sit: Callable[..., Sitting]) -> None:
    # Nobody reads: the terminal's buffer is full after some frames.
    sitting = sit(
        "if context.env.at == 600: view.close(); sys.stdout = open('/dev/null', 'w'); sys.exit(7)"
    )
    assert sitting.process.wait(20) == 7
    assert sitting.attributes == sitting.before


def test_without_a_terminal_the_run_goes_on_with_a_warning() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("SPIN", "view.control.quit()")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,
        check=True,
        timeout=30,
    )
    assert "UserWarning: the run is not shown in a terminal: neither input nor" in done.stderr
    assert done.stdout == "steps 1 skipped 0\n"
