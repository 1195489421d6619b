"""`python -m rleaas.evaluation.worker`: does one evaluation of a server."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rlcore import ConfigurationError, EvaluationFailed
from rlmesh.runs.outcomes import Outcome

from rleaas.evaluation.assigned import Work, require_contract, work_of
from rleaas.evaluation.engine import evaluate
from rleaas.evaluation.journal import EpisodeJournal
from rleaas.evaluation.plans import EpisodePlan
from rleaas.evaluation.players import AgentCosts, Player, agent_of
from rleaas.evaluation.provenance import provenance_of
from rleaas.evaluation.report import breakdown_of, costs_of, results_of
from rleaas.evaluation.rollouts import (
    EpisodeName,
    RolloutReader,
    RolloutRecord,
    RolloutRecorder,
    RolloutWriter,
)
from rleaas.evaluation.scoring import Scored
from rleaas.models.evaluation import EpisodeRecord
from rleaas.training.assignment import EvaluationAssignment, read_assignment
from rleaas.training.remote_sessions import RESOLVE_SECONDS, RemoteSessions
from rleaas.training.reporter import Reporter
from rleaas.training.stop_switch import StopSwitch
from rleaas.training.worker_process import Ending, run_worker

if TYPE_CHECKING:
    from rlmesh.runs.results import EpisodeResult

_TOLD = 10
"""Failures of a verifier that the log tells; all count in the report."""


def evaluate_checkpoint(reporter: Reporter, switch: StopSwitch) -> Ending:
    """Fetch the assignment, play or judge its episodes, and report what was seen.

    Raises:
        EvaluationFailed: no episode got a score.
        rlcore.Error: the checkpoint or the environment failed.
    """
    assignment = read_assignment(EvaluationAssignment, reporter.assignment())
    identity = assignment.environment.identity
    reporter.report(
        "started",
        {"pid": os.getpid(), "environment": identity.to_dict(), "attempt": assignment.attempt},
    )
    # Before anything is opened: until the server has heard this, a cancel kills this process.
    reporter.flush()
    work = work_of(assignment)
    with tempfile.TemporaryDirectory(prefix=f"rleaas-{assignment.id}-") as name:
        evaluation = _Evaluation(assignment, work, reporter, switch, Path(name))
        if assignment.source_evaluation_id is None:
            return evaluation.play()
        return evaluation.judge_again()


class _Evaluation:
    def __init__(
        self,
        assignment: EvaluationAssignment,
        work: Work,
        reporter: Reporter,
        switch: StopSwitch,
        directory: Path,
    ) -> None:
        self._assignment = assignment
        self._work = work
        self._reporter = reporter
        self._switch = switch
        self._directory = directory
        self._records: dict[int, EpisodeRecord] = {}
        self._told: dict[str, int] = {}
        self._agent_costs: AgentCosts | None = None
        self._began = time.monotonic()
        self._lock = threading.Lock()

    def play(self) -> Ending:
        assignment, work = self._assignment, self._work
        require_contract(assignment)
        checkpoint = self._checkpoint()
        with self._journal() as (journal, place):
            for record in journal:
                if record.index in journal:
                    self._take(work.scoring.of(record), again=True)
            if self._records:
                self._log(f"{len(self._records)} episodes were played by an earlier attempt")
            left = [plan for plan in work.plans if plan.index not in journal]
            player = checkpoint or agent_of(assignment, left, place / "agent.json")
            self._agent_costs = player.costs

            stopped = self._play_all(player, left, journal) if left else False
            return self._end(journal, stopped=stopped)

    def _play_all(
        self, player: Player, left: Sequence[EpisodePlan], journal: EpisodeJournal
    ) -> bool:
        """Play what is left; returns whether it was stopped before the end."""
        count = min(self._assignment.num_workers, len(left))
        if player.apart is None or count == 1:
            return self._play_some(player.model, player, left, journal)
        failed = threading.Event()

        def play(model: object, part: Sequence[EpisodePlan]) -> bool:
            try:
                return self._play_some(model, player, part, journal, failed)
            except BaseException:
                failed.set()
                raise

        # A run asks its model for one answer at a time, and this one is waited for: a run for each.
        with ThreadPoolExecutor(count, thread_name_prefix="rleaas-evaluation") as runs:
            begun = [runs.submit(play, player.apart(), left[at::count]) for at in range(count)]
            stopped = [one.result() for one in begun]
        return any(stopped)

    def _play_some(
        self,
        model: object,
        player: Player,
        plans: Sequence[EpisodePlan],
        journal: EpisodeJournal,
        given_up: threading.Event | None = None,
    ) -> bool:
        assignment, work = self._assignment, self._work

        def ended(rollout: RolloutRecord, _: EpisodeResult) -> None:
            scored = work.scoring.of(self._named(rollout, plans[rollout.index]))
            with self._lock:
                journal.add(scored.rollout)
                self._take(scored)

        _, stopped = evaluate(
            model,
            self._target(),
            plans,
            policy_seeds=range(len(plans)) if player.by_place else None,
            num_workers=1 if given_up is not None else assignment.num_workers,
            max_episode_steps=assignment.max_episode_steps,
            success_threshold=assignment.success_threshold,
            hooks=[
                RolloutRecorder(
                    ended,
                    name=lambda place: self._name(plans[place]),
                    action_names=work.action_names,
                )
            ],
            stop_requested=lambda: (
                self._switch.requested or (given_up is not None and given_up.is_set())
            ),
        )
        return stopped

    def judge_again(self) -> Ending:
        stopped = False
        path = self._directory / "judged.jsonl"
        with EpisodeJournal(path) as journal:
            for record in self._sources():
                if self._switch.requested:
                    stopped = True
                    break
                scored = self._work.scoring.of(replace(record, verdicts=()))
                journal.add(scored.rollout)
                self._take(scored)
            return self._end(journal, stopped=stopped)

    def _end(self, journal: EpisodeJournal, *, stopped: bool) -> Ending:
        assignment, work = self._assignment, self._work
        records = [self._records[index] for index in sorted(self._records)]
        if not stopped and not any(_has_number(one) for one in records):
            first = next(iter(records), None)
            raise EvaluationFailed(
                assignment.id,
                f"none of {len(work.plans)} episodes got a score; the first: "
                f"{first.error if first else 'nothing was played'}",
            )
        self._upload(journal)
        provenance = provenance_of(assignment, work)
        results: dict[str, object] = {
            **results_of(
                records,
                asked=len(work.plans),
                kind=work.scoring.kind,
                scenarios=work.scenarios,
            ),
            "stopped": "cancelled" if stopped else None,
            "verifier_breakdown": breakdown_of(records, work.known),
            "provenance": provenance,
            "package_versions": provenance["package_versions"],
            "checkpoint_sha256": provenance["checkpoint_sha256"],
            "warnings": self._warnings(records),
            "costs": self._costs(records),
        }
        return Ending({"results": results}, stopped=stopped)

    def _upload(self, journal: Iterable[RolloutRecord]) -> None:
        path = self._directory / "rollouts.parquet"
        with RolloutWriter(path) as writer:
            for record in journal:
                writer.add(record)
        if writer.rollouts:
            self._reporter.upload_rollouts("rollouts", path)

    def _take(self, scored: Scored, *, again: bool = False) -> None:
        record = scored.record
        self._records[record.index] = record
        self._reporter.report("episode", {**record.to_dict(), **({"again": True} if again else {})})
        for verdict in scored.to_log:
            times = self._told[verdict.verifier] = self._told.get(verdict.verifier, 0) + 1
            if times <= _TOLD and not again:
                why = verdict.explanation[:500]
                self._log(f"verifier {verdict.verifier} failed episode {record.index}: {why}")

    def _log(self, line: str) -> None:
        self._reporter.report("log", {"line": line})

    def _costs(self, records: Sequence[EpisodeRecord]) -> dict[str, object]:
        agent = self._agent_costs
        return {
            **costs_of(records),
            **({} if agent is None else {"agent": agent.to_dict()}),
            "wall_seconds": time.monotonic() - self._began,
        }

    def _checkpoint(self) -> Player | None:
        checkpoint = self._assignment.checkpoint
        if checkpoint is None:
            return None
        from rleaas.training.policy import load_policy

        path = self._directory / "checkpoint.zip"
        self._reporter.download(checkpoint.id, checkpoint.sha256, path)
        return Player(load_policy(path, checkpoint.algorithm))

    def _target(self) -> object:
        assignment = self._assignment
        lanes = (assignment.contract or {}).get("num_envs")
        if isinstance(lanes, int) and lanes > 1:
            # Lanes are stepped at once, and told nothing apart from their seeds.
            if self._work.scenarios or assignment.repetitions > 1 or assignment.num_workers > 1:
                raise ConfigurationError(
                    f"the environment has {lanes} lanes, and plays neither scenarios nor "
                    "repetitions, nor in several workers",
                    hint="Register one with a single lane, or ask for one episode a seed",
                )
            return assignment.environment.endpoint(timeout=RESOLVE_SECONDS)
        return _Session(RemoteSessions(environment=assignment.environment))

    def _name(self, plan: EpisodePlan) -> EpisodeName:
        return EpisodeName(
            id=f"{self._assignment.id}-{plan.index}",
            scenario_id=None if plan.scenario is None else plan.scenario.id,
            scenario_version=None if plan.scenario is None else plan.scenario.version,
            repetition=plan.repetition,
        )

    def _named(self, rollout: RolloutRecord, plan: EpisodePlan) -> RolloutRecord:
        return replace(rollout, index=plan.index, seed=plan.seed)

    @contextmanager
    def _journal(self) -> Generator[tuple[EpisodeJournal, Path]]:
        place = Path(self._assignment.journal_directory or self._directory) / self._assignment.id
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self._log(f"another attempt begins anew, as {place} cannot be written: {error}")
            place = self._directory
        try:
            with EpisodeJournal(place / "episodes.jsonl") as journal:
                yield journal, place
        except Exception:
            shutil.rmtree(place, ignore_errors=True)
            raise
        if not self._switch.requested or self._reporter.cancel_requested.is_set():
            shutil.rmtree(place, ignore_errors=True)

    def _sources(self) -> Generator[RolloutRecord]:
        plans = {plan.index: plan for plan in self._work.plans}
        for number, sha256 in enumerate(self._assignment.source_rollouts):
            path = self._directory / f"source-{number}.parquet"
            self._reporter.download_rollouts(sha256, path)
            with RolloutReader(path) as reader:
                for record in reader:
                    if record.index in plans:
                        yield replace(record, id=self._name(plans[record.index]).id)

    def _warnings(self, records: Sequence[EpisodeRecord]) -> list[str]:
        told: list[str] = []
        without = sum(Outcome(one.outcome).scored and one.score is None for one in records)
        if without:
            told.append(f"{without} episodes have no score: nothing says whether they succeeded")
        unjudged = sum(one.outcome == Outcome.GRADER_ERROR.value for one in records)
        if unjudged:
            told.append(f"{unjudged} episodes have no score: a verifier could not judge them")
        return told


@dataclass(frozen=True, slots=True)
class _Session:
    """Opens one more session of the environment."""

    sessions: RemoteSessions

    def __call__(self) -> object:
        return self.sessions(0)


def _has_number(record: EpisodeRecord) -> bool:
    return Outcome(record.outcome).scored


def main() -> int:
    """Run the worker's command line."""
    return run_worker("evaluation", evaluate_checkpoint)


if __name__ == "__main__":
    sys.exit(main())
