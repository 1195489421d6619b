"""Train with every algorithm as a job, and with its library alone: make bench-train.

A real server is started and the environment registered; the job runs without hyper-parameters, and
its best checkpoint plays episodes whose seeds training never saw. Then the library does the same on
the local environment. Ctrl-C leaves the rows that are done.

Wall times are of learning, on both sides alike: from the first step of training, all sessions being
open and the network built, to the end of the last update. Imports and building are in neither; of
a job they are in `start s`, which is the time from the request to its first metric.
"""

import argparse
import importlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import rlmesh
from references import REFERENCES, Reference
from rlcore import Error
from rleaas import Blocking, Client, TrainingJobResource
from rleaas.server.local import LocalServer
from rleaas.training.checkpoint_file import read_manifest
from rlmesh.runs.statistics import bootstrap_mean_interval
from served import machine

FIRST_SEED = 1_000_000
POLL_SECONDS = 0.05
READY_SECONDS = 120.0
JOB_SECONDS = 3600.0
MOST_RATIO = 1.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one algorithm did.

    Attributes:
        mean_return: of the best checkpoint, over the seeds of the evaluation.
        interval: 95 %, by bootstrap.
        start_seconds: from the request to the first metric.
        seconds: of learning, without imports and building, as the job tells them.
        direct_return: what the library alone reached with its final policy; None without one.
        direct_seconds: what its learning took, likewise.
        ratio: the job's time for a step against the library's.
        same_curve: whether both had the same return in every episode.
    """

    algorithm: str
    environment: str
    episodes: int
    steps: int
    mean_return: float
    interval: tuple[float, float]
    target: float
    met: bool
    start_seconds: float
    seconds: float
    steps_per_second: float
    direct_return: float | None = None
    direct_interval: tuple[float, float] | None = None
    direct_seconds: float | None = None
    ratio: float | None = None
    same_curve: bool | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for; 1 where a target is missed."""
    asked = _parser().parse_args(arguments)
    only = {name.strip().upper() for name in asked.only.split(",") if name.strip()}
    unknown = only - {one.algorithm for one in REFERENCES}
    if unknown:
        names = ", ".join(one.algorithm for one in REFERENCES)
        _say(f"error: no reference of {', '.join(sorted(unknown))}; there are {names}")
        return 2
    chosen = [one for one in REFERENCES if not only or one.algorithm in only]
    if asked.episodes:
        chosen = [replace(one, episodes=asked.episodes) for one in chosen]
    rows: list[Row] = []
    interrupted = False
    try:
        for row in measured(chosen, asked.seed, asked.seeds):
            rows.append(row)
            _say(line(row))
    except KeyboardInterrupt:
        interrupted = True
        _say("interrupted: these rows are done")
    if asked.json:
        sys.stdout.write(json.dumps({"machine": machine(), "rows": [asdict(row) for row in rows]}))
        sys.stdout.write("\n")
    else:
        sys.stdout.write("\n".join([HEAD, *(line(row) for row in rows), LEGEND]) + "\n")
    if interrupted:
        return 130
    return 0 if all(row.met for row in rows) else 1


def measured(references: Sequence[Reference], seed: int, seeds: int) -> Iterator[Row]:
    """One row after another."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-train-") as directory,
        LocalServer(data_dir=Path(directory)) as server,
        Client(base_url=server.url) as client,
    ):
        for number, reference in enumerate(references):
            _say(
                f"{reference.algorithm} on {named(reference.environment)} ({number + 1} of "
                f"{len(references)}): {reference.episodes} episodes"
            )
            yield _one(client, reference, seed, seeds, Path(directory))


def _one(client: Client, reference: Reference, seed: int, seeds: int, directory: Path) -> Row:
    name = f"Bench-{reference.algorithm}"
    client.Environment.create(
        name, source=reference.source, kwargs=dict(reference.kwargs)
    ).wait_until_ready(timeout=READY_SECONDS, progress=False)
    started = time.perf_counter()
    job = client.TrainingJob.run(
        name,
        algorithm=reference.algorithm,
        num_episodes=reference.episodes,
        max_steps=reference.max_steps,
        seed=seed,
        config={"target_reward": reference.target, "average_over": reference.average_over},
    )
    try:
        while not job.list_metrics() and job.refresh().status in ("pending", "running"):
            time.sleep(POLL_SECONDS)
        start_seconds = time.perf_counter() - started
        done = job.wait_until_complete(timeout=JOB_SECONDS)
    except KeyboardInterrupt:
        with suppress(Error):  # the interrupt is what counts, also when the server is gone
            job.cancel()
        raise
    results = done.results
    best = done.get_best_checkpoint()
    result = rlmesh.run(
        best.load(), reference.make(), seeds=range(FIRST_SEED, FIRST_SEED + seeds), close_env=True
    )
    returns = [one.reward for one in result.episodes if one.reward is not None]
    if len(returns) < seeds:
        raise SystemExit(f"error: {seeds - len(returns)} of {seeds} episodes failed: {result}")
    interval = bootstrap_mean_interval(returns)
    steps, seconds = int(str(results["total_steps"])), float(str(results["wall_seconds"]))
    mean = sum(returns) / len(returns)
    row = Row(
        algorithm=reference.algorithm,
        environment=named(reference.environment),
        episodes=int(str(results["current_episode"])),
        steps=steps,
        mean_return=mean,
        interval=(interval.low, interval.high),
        target=reference.target,
        met=mean >= reference.target,
        start_seconds=start_seconds,
        seconds=seconds,
        steps_per_second=steps / seconds,
    )
    if reference.direct is None:
        return row
    _say(f"{reference.algorithm} by its library alone")
    path = best.download(directory / f"{reference.algorithm}.zip")
    return _compared(row, reference, read_manifest(path).hyperparameters, done, seed, seeds)


def _compared(
    row: Row,
    reference: Reference,
    settings: Any,
    job: TrainingJobResource[Blocking],
    seed: int,
    seeds: int,
) -> Row:
    module, _, function = (reference.direct or "").partition(":")
    train = getattr(importlib.import_module(module), function)
    policy, seconds, steps, curve = train(reference, settings, seed)
    returns = played(reference, policy, seeds)
    interval = bootstrap_mean_interval(returns)
    told = [point.episode_reward for point in job.list_metrics()]
    return replace(
        row,
        direct_return=sum(returns) / len(returns),
        direct_interval=(interval.low, interval.high),
        direct_seconds=seconds,
        ratio=(row.seconds / row.steps) / (seconds / steps),
        # stable-baselines3's Monitor rounds returns to six digits.
        same_curve=[round(one, 6) for one in told if one is not None] == curve,
    )


def played(reference: Reference, policy: Callable[[Any], Any], seeds: int) -> list[float]:
    """The return of one episode for each seed."""
    env = reference.make()
    returns: list[float] = []
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        observation, _ = env.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(policy(observation))
            total += float(reward)
            over = terminated or truncated
        returns.append(total)
    env.close()
    return returns


def named(environment: str) -> str:
    """What the table calls it."""
    return environment.partition(":")[2] or environment


HEAD = (
    f"{'':6}{'environment':13}{'return [95 %]':>26}{'target':>8}{'':>8}{'start s':>9}"
    f"{'wall s':>8}{'steps/s':>9}{'alone: return':>15}{'wall s':>8}{'ratio':>7}  same curve"
)


LEGEND = (
    "wall s: learning alone, without imports and building, for both; start s: a job's request to "
    "its first metric"
)


def line(row: Row) -> str:
    """A row of the table."""
    low, high = row.interval
    text = (
        f"{row.algorithm:6}{row.environment:13}"
        f"{f'{row.mean_return:.1f} [{low:.1f}, {high:.1f}]':>26}{row.target:>8g}"
        f"{'met' if row.met else 'missed':>8}{row.start_seconds:>9.1f}{row.seconds:>8.1f}"
        f"{row.steps_per_second:>9.0f}"
    )
    if row.ratio is None:
        return text
    mark = "" if row.ratio <= MOST_RATIO else "!"
    return (
        f"{text}{row.direct_return:>15.1f}{row.direct_seconds:>8.1f}"
        f"{f'{row.ratio:.2f}{mark}':>7}  {'yes' if row.same_curve else 'no'}"
    )


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="algorithms, such as PPO,DQN (all)")
    parser.add_argument("--seeds", type=int, default=50, help="episodes of an evaluation (50)")
    parser.add_argument("--seed", type=int, default=0, help="of the trainings (0)")
    parser.add_argument("--episodes", type=int, help="another budget, to try the script itself")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
