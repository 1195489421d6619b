"""A run is killed at twenty moments: nothing is missing in the end, and nothing is there twice."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rlmesh.runs.journal import read_journal
from rlmesh.runs.results import RunResult

KILLS = 20
EPISODES = 300

EVALUATION = """
import sys, time
import gymnasium, numpy as np
import rlmesh
from rlmesh.numpy import Model

class Walk(gymnasium.Env):
    '''Rewards are irrational sums, so that any difference in an episode shows in its bits.'''

    observation_space = gymnasium.spaces.Box(-1e9, 1e9, (2,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = int(self.np_random.integers(2, 9))
        return self.np_random.normal(size=2), {}

    def step(self, action):
        time.sleep(0.0005)
        self.left -= 1
        state = self.np_random.normal(size=2)
        return state, float(state[0]) * (1 + action) / 3, self.left == 0, False, {}

model = Model(lambda observation: int(observation[0] > 0), name="threshold")
sys.stdin.readline()  # everything is imported; the journal is opened when that is asked for
journal = None if sys.argv[1] == "-" else sys.argv[1]
print("begun", flush=True)
result = rlmesh.run(
    model,
    Walk(),
    seeds=range(int(sys.argv[2])),
    journal=journal,
    on_episode=lambda episode: print(episode.index, flush=True),
)
result.save(sys.argv[3])
"""


def story(result: RunResult) -> list[tuple[int, int | None, float | None, int, str]]:
    return [
        (item.index, item.seed, item.reward, item.steps, item.outcome.value)
        for item in result.episodes
    ]


def indices(path: Path) -> list[int]:
    """The episodes of the whole lines of a journal, each as often as it is there."""
    whole = path.read_bytes().rpartition(b"\n")[0].splitlines()[1:] if path.exists() else []
    return [json.loads(line)["episode"]["index"] for line in whole]


@pytest.mark.slow
@pytest.mark.timeout(150)
def test_twenty_kills_lose_no_finished_episode_and_repeat_none(tmp_path: Path) -> None:
    script, journal = tmp_path / "evaluation.py", tmp_path / "run.jsonl"
    script.write_text(EVALUATION, encoding="utf-8")

    def begin(*where: Path | str) -> "subprocess.Popen[str]":
        command = [sys.executable, str(script), str(where[0]), str(EPISODES), str(where[1])]
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def go(process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        process.stdin.write("go\n")

    def finish(process: "subprocess.Popen[str]") -> None:
        process.communicate("go\n", timeout=60)
        assert process.returncode == 0

    undisturbed, resumed = tmp_path / "undisturbed.json", tmp_path / "resumed.json"
    finish(begin("-", undisturbed))

    moments = random.Random(4)
    seen: list[int] = []
    following = begin(journal, resumed)
    for _ in range(KILLS):
        # The next one imports meanwhile, which is most of its time.
        process, following = following, begin(journal, resumed)
        go(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        told = [int(process.stdout.readline()) for _ in range(moments.randint(0, 12))]
        # Into the next episode, its line, or the sync of that; or into the opening, before any.
        time.sleep(moments.uniform(0.0, 0.01 if told else 0.4))
        assert process.poll() is None, "the run was over before it could be killed"
        process.kill()
        rest, _ = process.communicate(timeout=20)
        assert process.returncode == -9
        told += [int(line) for line in rest.splitlines()]
        found = indices(journal)
        assert set(told) <= set(found), "an episode that was told is on the disk"
        assert found[: len(seen)] == seen, "what was on the disk before is there, and as it was"
        assert len(set(found)) == len(found), "no episode is there twice"
        seen = found
    assert 0 < len(seen) < EPISODES

    finish(following)

    assert indices(journal)[: len(seen)] == seen
    assert sorted(indices(journal)) == list(range(EPISODES))
    whole, after = RunResult.load(undisturbed), RunResult.load(resumed)
    assert story(after) == story(whole)
    assert after.coverage == (EPISODES, EPISODES, 0)
    assert list(read_journal(journal)[1]) == list(after.episodes)
