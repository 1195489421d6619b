"""`python -m rleaas.training.worker`: does one training job of a server."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rlcore import ConflictError, MissingDependencyError

from rleaas.training.assignment import TrainingAssignment, read_assignment
from rleaas.training.collapse import COLLAPSE, CollapseWatch, watch_of
from rleaas.training.config import TrainingConfig, validate_training_config
from rleaas.training.curriculum import Curriculum
from rleaas.training.guarded import LARGEST_REWARD, label_of
from rleaas.training.pacing import RATE_KEY, REAL_TIME_KEY, natural_rate
from rleaas.training.remote_sessions import STEP_SECONDS, ComposedSessions, RemoteSessions
from rleaas.training.reporter import Reporter
from rleaas.training.session_parts import SessionParts
from rleaas.training.shared_sessions import SharedSessions
from rleaas.training.stop_switch import StopSwitch
from rleaas.training.tracking.sink import tracked
from rleaas.training.tracking.trackers import RunOf
from rleaas.training.trainer import (
    Progress,
    Resume,
    SessionFactory,
    StopReason,
    TrainingTask,
    trainer_for,
)
from rleaas.training.worker_process import Ending, run_worker

if TYPE_CHECKING:
    from rleaas.training.kept_rollouts import RolloutKeeper


class ReportingSink:
    """Turns what happens in a training into reports and uploads."""

    def __init__(self, job_id: str, reporter: Reporter, switch: StopSwitch) -> None:
        self._job_id = job_id
        self._reporter = reporter
        self._switch = switch
        self.curriculum: Curriculum | None = None
        self.collapse: CollapseWatch | None = None

    def episode_finished(self, progress: Progress) -> None:
        """Report the episode's return and the running means, and a tier that it mastered."""
        numbers = _numbers(progress)
        numbers["episode_reward"] = progress.episode_reward
        numbers["episode_length"] = progress.episode_length
        if progress.verifier_scores is not None:
            numbers["verifier_scores"] = dict(progress.verifier_scores)
            numbers["composite_verifier_score"] = progress.composite_verifier_score
        self._reporter.report("metric", numbers)
        for advance in self.curriculum.news() if self.curriculum else ():
            self.alert("tier_advance", advance.to_dict())
            self.log(
                f"tier {advance.from_tier} is mastered ({advance.success_rate:.0%} of "
                f"{advance.window} episodes); going on with tier {advance.to_tier}"
            )

    def update_finished(self, progress: Progress, diagnostics: Mapping[str, float]) -> None:
        """Report the algorithm's own numbers; of a training that diverges, those that are left.

        A policy that has collapsed raises an alert; see `CollapseWatch`.
        """
        told = {name: value for name, value in diagnostics.items() if abs(value) <= LARGEST_REWARD}
        self._reporter.report("metric", {**_numbers(progress), "metrics": told})
        seen = None if self.collapse is None else self.collapse.look(progress, diagnostics)
        if seen is not None:
            self.alert(COLLAPSE, seen)
            self.log(
                f"warning: the policy has collapsed: its entropy is {seen['value']:.2g} and its "
                f"mean return {seen['avg_reward']:.4g}; lower learning_rate or raise ent_coef"
            )

    def log(self, line: str) -> None:
        """Report a line of the job's log."""
        self._reporter.report("log", {"line": line})

    def alert(self, kind: str, data: Mapping[str, object]) -> None:
        """Report what people want to hear of at once."""
        self._reporter.report("alert", {"kind": kind, **data})

    def checkpoint_saved(
        self, path: Path, label: str, progress: Progress, state: Path | None = None
    ) -> None:
        """Upload the file."""
        checkpoint_id = f"ckpt_{self._job_id}_{progress.episode}"
        numbers = _numbers(progress)
        facts: dict[str, str | int | float] = {"label": label}
        for key in ("episode", "timestep", "avg_reward", "success_rate"):
            value = numbers[key]
            if isinstance(value, int | float):
                facts[key] = value
        if progress.composite_verifier_score is not None:
            facts["composite_verifier_score"] = progress.composite_verifier_score
        try:
            self._reporter.upload(checkpoint_id, path, facts, state=state)
        except ConflictError as error:
            if not self._switch.requested:
                raise
            self.log(f"checkpoint {checkpoint_id} was not taken after the stop: {error}")
        else:
            self.log(f"saved checkpoint {checkpoint_id} ({label}) at episode {progress.episode}")

    def keep_rollouts(self, keeper: RolloutKeeper, begun: int) -> None:
        """Upload the episodes that were kept."""
        keeper.close()
        if not keeper.rollouts:
            return
        try:
            self._reporter.upload_rollouts(f"training-{begun}", keeper.path)
        except ConflictError as error:
            if not self._switch.requested:
                raise
            self.log(f"the rollouts were not taken after the stop: {error}")

    def stop_requested(self) -> bool:
        """Whether the server or a signal ended the job."""
        return self._switch.requested


def train(reporter: Reporter, switch: StopSwitch) -> Ending:
    """Fetch the assignment, train, and say what came of it.

    Raises:
        rlcore.Error: what failed, on which thing.
    """
    from rleaas.training.kept_rollouts import RolloutKeeper

    assignment = read_assignment(TrainingAssignment, reporter.assignment())
    config = validate_training_config(
        assignment.algorithm, assignment.num_episodes, assignment.max_steps, assignment.config
    )
    trainer = trainer_for(config.algorithm)
    sink = ReportingSink(assignment.id, reporter, switch)
    for warning in assignment.warnings:
        sink.log(f"warning: {warning}")
    identity = assignment.environment.identity
    reporter.report("started", _beginning(assignment))
    # Before anything is opened: until the server has heard this, a cancel kills this process.
    reporter.flush()
    with (
        tempfile.TemporaryDirectory(prefix=f"rleaas-{assignment.id}-") as name,
        _plain_sessions(assignment, config, sink) as base,
    ):
        directory = Path(name)
        sessions = _sessions(assignment, config, sink, base)
        begun = cast("int", _beginning(assignment)["episode"])
        keeper = RolloutKeeper(
            assignment.id, directory / "rollouts.parquet", config.num_episodes, begin=begun
        )
        sessions.keeper = keeper
        sink.curriculum = sessions.parts.curriculum
        sink.collapse = watch_of(assignment.contract)
        task = TrainingTask(
            job_id=assignment.id,
            config=config,
            seed=_seed(assignment, config, sink),
            environment=identity,
            make_env=sessions,
            directory=directory,
            resume=_resume(assignment, reporter, directory),
        )
        places: dict[str, object] = {}

        def placed(tracker: str, place: Mapping[str, object]) -> None:
            places[tracker] = place
            reporter.report("progress", {"tracking": dict(places)})

        run = _tracked_run(assignment, config, task.seed, directory)
        with tracked(sink, config.tracking, run, placed=placed) as tracking:
            results = trainer.train(task, tracking)
        sink.keep_rollouts(keeper, begun)
    stopped = results.stopped_by is StopReason.CANCELLED
    if results.updates == 0 and not stopped:
        sink.log(
            f"warning: the policy was never updated: {results.progress.timestep} steps are fewer "
            f"than {config.algorithm} collects before its first update; ask for more episodes"
        )
    return Ending({"results": results.to_dict()}, stopped=stopped)


def _tracked_run(
    assignment: TrainingAssignment, config: TrainingConfig, seed: int, directory: Path
) -> RunOf:
    shared = directory if assignment.tracking_directory is None else assignment.tracking_directory
    return RunOf(
        job_id=assignment.id,
        name=assignment.run_name or assignment.id,
        directory=Path(shared) / assignment.id,
        shared=Path(shared),
        facts={
            "algorithm": config.algorithm,
            "environment": label_of(assignment.environment.identity),
            "episodes": config.num_episodes,
            "max_steps": config.max_steps,
            "seed": seed,
            **config.hyperparameters,
        },
    )


def _beginning(assignment: TrainingAssignment) -> dict[str, object]:
    """Who trains, and which episode this attempt goes on from."""
    own = assignment.resume if assignment.resume and assignment.resume.same_job else None
    return {
        "pid": os.getpid(),
        "environment": assignment.environment.identity.to_dict(),
        "attempt": assignment.attempt,
        "episode": own.episode if own else 0,
        "timestep": (own.timestep or 0) if own else 0,
    }


@contextmanager
def _plain_sessions(
    assignment: TrainingAssignment, config: TrainingConfig, sink: ReportingSink
) -> Generator[SessionFactory]:
    here = RemoteSessions(
        environment=assignment.environment, step_seconds=config.step_timeout or STEP_SECONDS
    )
    if config.rollout_workers is None:
        yield SharedSessions(here)
        return
    try:
        from rleaas.training.rollout_workers import RolloutWorkers
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"rollout_workers need {error.name!r}, which is not installed",
            hint="Install the extra on the cluster's nodes: pip install 'rleaas[train,ray]'",
        ) from error
    workers = RolloutWorkers(config.rollout_workers, here, step_seconds=here.step_seconds)
    try:
        sink.log(f"rollout workers: {len(workers.nodes())} on {len(set(workers.nodes()))} nodes")
        yield workers
    finally:
        workers.close()


def _sessions(
    assignment: TrainingAssignment,
    config: TrainingConfig,
    sink: ReportingSink,
    base: SessionFactory,
) -> ComposedSessions:
    parts = SessionParts.of(
        max_steps=config.max_steps,
        reward=config.reward_fn,
        verifiers=assignment.verifiers,
        scenarios=assignment.scenarios,
        curriculum=config.curriculum,
    )
    return ComposedSessions(
        base=base,
        parts=parts,
        rate=_rate(assignment, config, sink),
        stopped=sink.stop_requested,
        tell=sink.log,
        name=label_of(assignment.environment.identity),
    )


def _rate(
    assignment: TrainingAssignment, config: TrainingConfig, sink: ReportingSink
) -> float | None:
    metadata = (assignment.contract or {}).get("metadata")
    rate = natural_rate(metadata)
    speed = None if config.simulation is None else config.simulation.speed
    if rate is not None:
        rate *= speed or 1.0
        sink.log(f"each session steps at most {rate:g} times a second")
    elif speed is not None:
        name = label_of(assignment.environment.identity)
        sink.log(
            f"simulation.speed {speed:g} changes nothing: {name} is not paced, as its metadata has "
            f"no {RATE_KEY}, nor {REAL_TIME_KEY}"
        )
    return rate


def _resume(assignment: TrainingAssignment, reporter: Reporter, directory: Path) -> Resume | None:
    if assignment.resume is None:
        return None
    asked = assignment.resume
    policy = directory / f"{asked.id}.zip"
    reporter.download(asked.id, asked.sha256, policy)
    state = None
    if asked.state_sha256 is not None:
        state = directory / f"{asked.id}-state.zip"
        reporter.download(asked.id, asked.state_sha256, state, what="state")
    return Resume(policy=policy, state=state, same_job=asked.same_job)


def _seed(assignment: TrainingAssignment, config: TrainingConfig, sink: ReportingSink) -> int:
    seed = assignment.seed if assignment.seed is not None else config.effective_seed
    if seed is None:
        seed = secrets.randbelow(2**31)
        sink.log(f"no seed was given; using seed {seed}")
    return seed


def _numbers(progress: Progress) -> dict[str, object]:
    return {
        "episode": progress.episode,
        "timestep": progress.timestep,
        "avg_reward": progress.avg_reward,
        "success_rate": progress.success_rate,
        "wall_seconds": round(progress.wall_seconds, 3),
        **({} if progress.tier is None else {"current_tier": progress.tier}),
    }


def main() -> int:
    """Run the worker's command line."""
    return run_worker("training", train)


if __name__ == "__main__":
    sys.exit(main())
