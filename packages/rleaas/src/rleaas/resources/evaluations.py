"""Evaluations: start, find, list, read reports."""

from __future__ import annotations

from builtins import list as list_
from collections.abc import Mapping, Sequence
from pathlib import Path

from rlcore import ConfigurationError, UnexpectedReply

from rleaas._binding import D, call, stream
from rleaas._flow import request as build
from rleaas._flow.decode import read
from rleaas._flow.retry import ask, fetch
from rleaas._flow.wire import Flow, Save, Stream
from rleaas.models import (
    AuditReport,
    EnvironmentVersion,
    Evaluation,
    EvaluationReport,
    Reproduction,
)
from rleaas.models.training import JOB_STATUSES
from rleaas.resources import evaluation_judging as judging
from rleaas.resources import evaluation_routes as routes
from rleaas.resources.checkpoints import KIND as CHECKPOINT
from rleaas.resources.checkpoints import CheckpointRef
from rleaas.resources.environment_routes import EnvironmentRef, reference
from rleaas.resources.evaluation_handle import EvaluationJobResource
from rleaas.resources.evaluation_request import what_is_played, where_and_by_whom, who_plays
from rleaas.resources.evaluation_rollouts import EvaluationRollouts
from rleaas.resources.pages import collect, iterate
from rleaas.resources.references import IdRef, given, id_of, require_one_of
from rleaas.resources.report_signature import SUFFIX


class EvaluationClient(EvaluationRollouts[D]):
    """The evaluations of the platform."""

    @call
    def run(
        self,
        agent_checkpoint_id: CheckpointRef = "",
        scenario_suite_id: IdRef = "",
        verifier_ids: Sequence[IdRef] | None = None,
        name: str = "",
        environment_name: EnvironmentRef | EnvironmentVersion = "",
        config: Mapping[str, object] | None = None,
        *,
        agent: IdRef | Mapping[str, object] = "",
        scenario_ids: Sequence[IdRef] | None = None,
        repetitions: int | None = None,
        num_workers: int | None = None,
        pass_threshold: float | None = None,
        seeds: Sequence[int] | None = None,
        episodes: int | None = None,
        base_seed: int | None = None,
        max_episode_steps: int | None = None,
        success_threshold: float | None = None,
        environment_version: int | None = None,
        idempotency_key: str | None = None,
    ) -> Flow[EvaluationJobResource[D]]:
        """Start an evaluation of a checkpoint, or of an agent, and return its handle at once.

        Every scenario is played with every seed, `repetitions` times; without scenarios it is one
        episode for each seed and repetition.

        Args:
            agent_checkpoint_id: the checkpoint, by id or handle.
            scenario_suite_id: a suite, by id or name, such as the built-in `suite_eval_01`.
            verifier_ids: who judges, by id, name or handle; else a scenario's own verifier does,
                else those that are attached to the environment, and where there is none a
                scenario's success criteria decide.
            name: what to call it.
            environment_name: another environment than the one the checkpoint was trained on, or
                one of its versions.
            config: the same settings as the keyword arguments, as published.
            agent: in place of a checkpoint: `random`, which picks any action; `expert`, which plays
                the reference solutions of a built-in world; `llm`, the server's own language model,
                on the text face of a world; or an object that names another one, `{"kind": "llm",
                "base_url": ..., "model": ...}`, with `protocol` (`openai` or `anthropic`),
                `instructions` and `timeout_seconds` where they are not the defaults. It is asked
                without a key: only the server's own has one.
            scenario_ids: single scenarios instead of a suite.
            repetitions: how often each scenario and seed is played; 1 when nobody says.
            num_workers: on how many environments at once; of a language model, how many episodes
                it is asked about at once.
            pass_threshold: the score, from 0 to 1, from which an episode passes (without verifiers
                and scenarios the return, any number); by default it passes when all
                its verifiers say so.
            seeds: which seeds; of scenarios five where nothing is said.
            episodes: that many seeds instead, from `base_seed` on.
            base_seed: the first of them; 0 when nobody says.
            max_episode_steps: where an episode is cut off.
            success_threshold: the return from which an episode counts as success, where the
                environment itself does not tell.
            environment_version: an older version instead of the current one.
            idempotency_key: with the same key, the same evaluation is returned instead of a second
                one; by default every call has its own.

        Raises:
            ConfigurationError: the agent cannot play there, or there is no language model; a config
                key is unknown or said twice, or a seed is no whole number.
            CheckpointNotFound: there is no such checkpoint.
            SuiteNotFound, ScenarioNotFound, VerifierNotFound: there is none.
            InvalidRequestError: the platform refuses a value; it names it.
        """
        player = who_plays(agent_checkpoint_id, agent)
        body: dict[str, object] = {
            **player,
            "purpose": "evaluation",
            **what_is_played(
                config or {},
                scenario_ids=scenario_ids,
                seeds=seeds,
                episodes=episodes,
                base_seed=base_seed,
                repetitions=repetitions,
                num_workers=num_workers,
                pass_threshold=pass_threshold,
                max_episode_steps=max_episode_steps,
                success_threshold=success_threshold,
            ),
            **where_and_by_whom(
                environment_name,
                suite=scenario_suite_id,
                verifier_ids=verifier_ids,
                environment_version=environment_version,
            ),
            **given(name=name or None),
        }
        request = build.post(
            "/api/evaluations",
            body,
            key=self._context.new_key() if idempotency_key is None else idempotency_key,
            kind=CHECKPOINT,
            ref=str(player.get("agent_checkpoint_id", "")),
        )
        reply = yield from ask(request, self._context)
        return self._handle(read(Evaluation, request, reply))

    @call
    def get(self, evaluation_id: IdRef) -> Flow[EvaluationJobResource[D]]:
        """Return the handle of the evaluation with this id.

        Raises:
            EvaluationNotFound: there is none.
        """
        return self._handle(
            (yield from routes.get(id_of(evaluation_id, routes.KIND), self._context))
        )

    @call
    def list(
        self, status: str | None = None, limit: int | None = None
    ) -> Flow[list_[EvaluationJobResource[D]]]:
        """Return the evaluations, newest first; all of them, or at most `limit`.

        Args:
            status: only those with this status.
            limit: how many at most.
        """
        records = yield from collect(
            Evaluation,
            "/api/evaluations",
            _filters(status),
            "evaluations",
            self._context,
            limit=limit,
        )
        return [self._handle(record) for record in records]

    @stream
    def iterate(self, status: str | None = None) -> Stream[Evaluation]:
        """Yield the records that `list` would return, asking for them as they are read."""
        yield from iterate(
            Evaluation, "/api/evaluations", _filters(status), "evaluations", self._context
        )

    @call
    def get_report(
        self, evaluation_id: IdRef, environment_name: EnvironmentRef = ""
    ) -> Flow[EvaluationReport]:
        """Return an evaluation's report as far as it has come; partial while it runs.

        Args:
            evaluation_id: which one; the id alone finds it.
            environment_name: where it is known, the report must be of this environment.

        Raises:
            EvaluationNotFound: there is no such evaluation.
            ConfigurationError: it ran on another environment.
        """
        text = id_of(evaluation_id, routes.KIND)
        asked = "" if environment_name == "" else reference(environment_name)
        found = yield from routes.report(text, self._context)
        if asked and not asked.isdecimal() and found.environment_name not in (None, asked):
            raise ConfigurationError(
                f"evaluation {text!r} ran on environment {found.environment_name!r}, "
                f"not on {asked!r}",
                hint="Leave environment_name out to get the report by its id.",
            )
        return found

    @call
    def export_audit_report(
        self,
        evaluation_id: IdRef = "",
        format: str = "json",
        include_trajectory_summary: bool = True,
        include_verifier_explanations: bool = True,
        signature: bool = False,
    ) -> Flow[AuditReport]:
        """Let the platform write a report about an evaluation, or about the newest, to a file.

        Args:
            evaluation_id: which one; empty is the newest hundred.
            format: `json`, `csv`, `pdf` or `html`.
            include_trajectory_summary: whether each episode is in it.
            include_verifier_explanations: whether what verifiers said is in it.
            signature: whether the answer has the platform's Ed25519 signature of exactly the
                file's bytes, which `rleaas.verify_report` checks.

        Raises:
            EvaluationNotFound: there is no such evaluation.
            InvalidRequestError: there is no such format.
        """
        body: dict[str, object] = {
            "format": format,
            "include_trajectory_summary": include_trajectory_summary,
            "include_verifier_explanations": include_verifier_explanations,
            "signature": signature,
            **({} if evaluation_id == "" else {"evaluation_id": id_of(evaluation_id, routes.KIND)}),
        }
        key = self._context.new_key()
        request = build.post("/api/rollouts/export", body, key=key, kind="evaluation")
        reply = yield from ask(request, self._context)
        return read(AuditReport, request, reply)

    @call
    def download_report(self, report: AuditReport, path: str | Path) -> Flow[Path]:
        """Save the file of a report, which must have the digest that was told; return where.

        A signed one gets its signature beside it, as `FILE.sig`, where `verify_report` finds it.
        """
        target = Path(path).expanduser().absolute()
        request = build.get(report.report_url, kind="report", ref=report.report_url)
        saved = yield from fetch(Save(request, target, report.sha256), self._context)
        if saved.sha256 != report.sha256:
            raise UnexpectedReply(f"{report.report_url} has the digest {saved.sha256}")
        if report.signature is not None:
            target.with_name(target.name + SUFFIX).write_text(f"{report.signature}\n", "utf-8")
        return target

    @call
    def cancel(self, evaluation_id: IdRef) -> Flow[EvaluationJobResource[D]]:
        """Ask an evaluation to end; return its handle.

        Raises:
            EvaluationNotFound: there is no such evaluation.
            ConflictError: it has ended otherwise; one that was cancelled is returned as it is.
        """
        return self._handle(
            (yield from routes.cancel(id_of(evaluation_id, routes.KIND), self._context))
        )

    @call
    def rescore(
        self,
        evaluation_id: IdRef,
        verifier_ids: Sequence[IdRef],
        name: str = "",
        *,
        pass_threshold: float | None = None,
        idempotency_key: str | None = None,
    ) -> Flow[EvaluationJobResource[D]]:
        """Let verifiers judge the stored rollouts of an evaluation; nothing is played again.

        Args:
            evaluation_id: whose rollouts.
            verifier_ids: who judges now, by id, name or handle.
            name: what to call the new evaluation, which names the other as its source.
            pass_threshold: the score from which an episode passes, from 0 to 1.
            idempotency_key: with the same key, the same evaluation is returned.

        Raises:
            EvaluationNotFound, VerifierNotFound: there is none.
            ConflictError: it has not ended, or none of its rollouts are stored.
        """
        text = id_of(evaluation_id, routes.KIND)
        asking = judging.rescore(
            text, verifier_ids, name, pass_threshold, idempotency_key, self._context
        )
        return self._handle((yield from asking))

    @call
    def reproduce(
        self,
        report: IdRef,
        timeout: float | None = 3600.0,
        poll_interval: float | None = None,
        *,
        name: str = "",
        idempotency_key: str | None = None,
    ) -> Flow[Reproduction]:
        """Play an evaluation again, and return whether it came out the same, and what changed.

        It is played on the same version of the environment, with scenarios and verifiers as they
        are now.

        Args:
            report: the evaluation, by its report, id or handle.
            timeout: for how many seconds to wait for it; None: as long as it takes.
            poll_interval: seconds between two looks.
            name: what to call the new evaluation.
            idempotency_key: with the same key it is played once.

        Raises:
            EvaluationNotFound: there is no such evaluation.
            ConflictError: nothing was played for it: it judged rollouts of another one.
            EvaluationFailed: it could not be played again.
            PlatformTimeout: it takes longer. It goes on, and `get_reproduction` compares it then.
        """
        text = id_of(report, routes.KIND)
        asking = judging.reproduce(
            text, name, timeout, poll_interval, idempotency_key, self._context
        )
        return (yield from asking)

    @call
    def get_reproduction(
        self, evaluation_id: IdRef, other: IdRef | None = None
    ) -> Flow[Reproduction]:
        """Return whether an evaluation came out as the one that it reproduces, or as another.

        Raises:
            EvaluationNotFound: there is no such evaluation.
            ConflictError: one of them is not complete.
        """
        text = id_of(evaluation_id, routes.KIND)
        against = None if other is None else id_of(other, routes.KIND)
        return (yield from judging.reproduction(text, against, self._context))

    def _handle(self, record: Evaluation) -> EvaluationJobResource[D]:
        return EvaluationJobResource(self._driver, record)


def _filters(status: str | None) -> dict[str, str | int | None]:
    if status is not None:
        require_one_of(status, JOB_STATUSES, "a status of an evaluation")
    return {"status": status}
