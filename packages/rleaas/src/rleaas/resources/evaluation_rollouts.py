"""What was played in evaluations: the rollouts, and how two of them differ."""

from __future__ import annotations

from builtins import list as list_
from collections.abc import Sequence

from rlcore import ConfigurationError

from rleaas._binding import D, Resource, call, stream
from rleaas._flow import request as build
from rleaas._flow.decode import read
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow, Request, Stream
from rleaas.models import Rollout, RolloutComparison, RolloutStep
from rleaas.resources.checkpoints import KIND as CHECKPOINT
from rleaas.resources.checkpoints import CheckpointRef
from rleaas.resources.environment_routes import EnvironmentRef, reference
from rleaas.resources.evaluation_request import suite_of
from rleaas.resources.evaluation_routes import KIND
from rleaas.resources.pages import collect_from, iterate_from
from rleaas.resources.references import IdRef, given, id_of, ids_of


class EvaluationRollouts(Resource[D]):
    """The part of the evaluations' client that is about their rollouts."""

    @call
    def list_rollouts(
        self, environment_name: EnvironmentRef | None = None, limit: int | None = None
    ) -> Flow[list_[Rollout]]:
        """Return the rollouts that are stored of an environment, or of all, newest first.

        Args:
            environment_name: of which environment.
            limit: how many at most; all of them, where nothing is said.
        """
        name = "" if environment_name is None else reference(environment_name)
        path = build.path("/api/rollouts/{}", name) if name else "/api/rollouts-all"

        def request_at(size: int, place: int) -> Request:
            params = {"limit": size, "offset": place}
            return build.get(path, params, kind="environment", ref=name)

        asking = collect_from(Rollout, request_at, "rollouts", self._context, limit=limit)
        return (yield from asking)

    @stream
    def rollouts(self, evaluation_id: IdRef, *, steps: bool = False) -> Stream[Rollout]:
        """Yield an evaluation's rollouts in the order of its episodes, asked for as they are read.

        Args:
            evaluation_id: which evaluation.
            steps: whether each comes with its steps.

        Raises:
            EvaluationNotFound: there is no such evaluation.
        """
        text = id_of(evaluation_id, KIND)
        path = build.path("/api/evaluations/{}/rollouts", text)

        def request_at(size: int, place: int) -> Request:
            params: dict[str, str | int | None] = {"limit": size, "offset": place}
            if steps:
                params["steps"] = "true"
            return build.get(path, params, kind=KIND, ref=text)

        yield from iterate_from(Rollout, request_at, "rollouts", self._context)

    @stream
    def rollout_steps(
        self, rollout_id: IdRef, environment_name: EnvironmentRef
    ) -> Stream[RolloutStep]:
        """Yield the steps of a rollout in their order, asked for as they are read.

        Raises:
            NotFoundError: there is none with this id on this environment.
        """
        text = id_of(rollout_id, "rollout")
        path = build.path("/api/rollouts/{}/{}/steps", reference(environment_name), text)

        def request_at(size: int, place: int) -> Request:
            return build.get(path, {"limit": size, "offset": place}, kind="rollout", ref=text)

        yield from iterate_from(RolloutStep, request_at, "steps", self._context)

    @call
    def get_rollout(self, rollout_id: IdRef, environment_name: EnvironmentRef) -> Flow[Rollout]:
        """Return a rollout of an environment with its steps.

        Raises:
            NotFoundError: there is none with this id on this environment.
        """
        text = id_of(rollout_id, "rollout")
        path = build.path("/api/rollouts/{}/{}", reference(environment_name), text)
        request = build.get(path, kind="rollout", ref=text)
        reply = yield from ask(request, self._context)
        return read(Rollout, request, reply)

    @call
    def get_rollout_comparison(
        self,
        environment_name: EnvironmentRef,
        baseline_id: IdRef,
        trained_id: IdRef,
        job_id: IdRef | None = None,
    ) -> Flow[RolloutComparison]:
        """Return how two rollouts, or two evaluations, of an environment differ.

        Raises:
            NotFoundError: one of them is not there.
        """
        path = build.path("/api/rollout-comparison/{}", reference(environment_name))
        params = {
            "baseline_id": id_of(baseline_id, "rollout or evaluation"),
            "trained_id": id_of(trained_id, "rollout or evaluation"),
            "job_id": None if job_id is None else id_of(job_id, "training job"),
        }
        request = build.get(path, params, kind="rollout")
        reply = yield from ask(request, self._context)
        return read(RolloutComparison, request, reply)

    @call
    def compare(
        self,
        agent_checkpoints: Sequence[CheckpointRef] = (),
        scenario_suite_id: IdRef = "",
        verifier_ids: Sequence[IdRef] | None = None,
        environment_name: EnvironmentRef = "",
        baseline_id: IdRef | None = None,
        trained_id: IdRef | None = None,
        job_id: IdRef | None = None,
    ) -> Flow[RolloutComparison]:
        """Return how two checkpoints, or two rollouts or evaluations that there are, differ.

        Checkpoints are compared by their newest evaluations of the same scenarios and seeds, on the
        same version of the environment and by the same verifiers; those that are missing are
        started and waited for a while. Episodes are paired by scenario, seed and repetition; there
        is a winner only where the paired difference says so, else it is `inconclusive`.

        Args:
            agent_checkpoints: two of them, by id or handle: the baseline, then the trained one.
            scenario_suite_id: a suite that both play.
            verifier_ids: who judges both, by id, name or handle.
            environment_name: where to; by default what the baseline was trained on.
            baseline_id: a rollout or an evaluation, in place of checkpoints; with `trained_id`.
            trained_id: the other one.
            job_id: the job that both must be of.

        Raises:
            ConfigurationError: neither of the two forms is complete.
            CheckpointNotFound: there is no such checkpoint.
            ConflictError: the evaluations take longer, or one failed; the error names them.
        """
        if baseline_id is not None and trained_id is not None:
            if environment_name == "":
                raise ConfigurationError(
                    "comparing baseline_id and trained_id needs their environment",
                    hint="Pass environment_name=.",
                )
            asking = EvaluationRollouts.get_rollout_comparison.flow(
                self, environment_name, baseline_id, trained_id, job_id
            )
            return (yield from asking)
        checkpoints = ids_of(agent_checkpoints, CHECKPOINT)
        if len(checkpoints) != 2:
            raise ConfigurationError(
                f"a comparison is of two checkpoints, not of {len(checkpoints)}",
                hint="Pass the baseline and the trained one, or baseline_id= and trained_id=.",
            )
        body: dict[str, object] = {
            "agent_checkpoints": checkpoints,
            "comparison": True,
            **given(
                scenario_suite_id=suite_of(scenario_suite_id),
                verifier_ids=ids_of(verifier_ids, "verifier") if verifier_ids else None,
            ),
        }
        if environment_name != "":
            body["environment_name"] = reference(environment_name)
        request = build.post(
            "/api/rollouts",
            body,
            key=self._context.new_key(),
            kind=CHECKPOINT,
            # The platform waits for what it starts.
            timeout=self._context.at_least(40.0),
        )
        reply = yield from ask(request, self._context)
        return read(RolloutComparison, request, reply)
