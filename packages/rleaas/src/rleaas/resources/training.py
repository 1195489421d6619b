"""Training jobs: start, find, list, cancel."""

from __future__ import annotations

from builtins import list as list_
from collections.abc import Mapping, Sequence

from rlcore import ConfigurationError

from rleaas._binding import D, Resource, call, stream
from rleaas._flow import request as build
from rleaas._flow.decode import read
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow, Stream
from rleaas.models import EnvironmentVersion, TrainingCheck, TrainingJob, TrainingQueue
from rleaas.models.training import JOB_STATUSES
from rleaas.resources import environment_routes, training_routes
from rleaas.resources.checkpoints import CheckpointRef
from rleaas.resources.environment_routes import EnvironmentRef
from rleaas.resources.pages import collect, iterate
from rleaas.resources.references import IdRef, id_of, require_one_of, require_type
from rleaas.resources.training_handle import TrainingJobResource
from rleaas.resources.training_request import (
    ALGORITHM,
    beside_config,
    body_of,
    environment_of,
    known_algorithm,
)
from rleaas.resources.training_settings import Reward, merged, reward_form
from rleaas.training.episode_limits import DEFAULT_MAX_STEPS

JOB = "training job"


class TrainingClient(Resource[D]):
    """The training jobs of the platform."""

    def configure_training(
        self,
        algorithm: str = ALGORITHM,
        max_steps: int = DEFAULT_MAX_STEPS,
        reward_fn: Reward | None = None,
        simulation: Mapping[str, object] | None = None,
        config: Mapping[str, object] | None = None,
        *,
        num_episodes: int | None = None,
        learning_rate: float | None = None,
        batch_size: int | None = None,
        checkpoint_interval: int | None = None,
        num_envs: int | None = None,
        n_envs: int | None = None,
        curriculum: Mapping[str, object] | bool | None = None,
        compute_quota: Mapping[str, float] | None = None,
        description: str | None = None,
    ) -> dict[str, object]:
        """Return a config for `run`, checked here; nothing is sent.

        Raises:
            ConfigurationError: a value is not usable; it is named.
        """
        require_type({} if config is None else config, Mapping, "config")
        rest = {
            key: value
            for key, value in dict(config or {}).items()
            if key not in ("algorithm", "max_steps")
        }
        if reward_fn is not None:
            rest["reward_fn"] = reward_form(reward_fn)
        checked = merged(
            rest,
            num_episodes=None if num_episodes is None else _count("num_episodes", num_episodes),
            simulation=simulation,
            learning_rate=learning_rate,
            batch_size=batch_size,
            checkpoint_interval=checkpoint_interval,
            num_envs=num_envs,
            n_envs=n_envs,
            curriculum=curriculum,
            compute_quota=compute_quota,
            description=description,
        )
        checked["algorithm"] = known_algorithm(algorithm)
        checked["max_steps"] = _count("max_steps", max_steps)
        return checked

    @call
    def run(
        self,
        environment_name: EnvironmentRef | EnvironmentVersion | None = None,
        env_id: EnvironmentRef | EnvironmentVersion | None = None,
        agent_id: IdRef | None = None,
        scenario_suite_id: IdRef | None = None,
        algorithm: str = ALGORITHM,
        config: Mapping[str, object] | None = None,
        name: str | None = None,
        verifier_ids: Sequence[IdRef] | None = None,
        resume_from_checkpoint: CheckpointRef | None = None,
        *,
        num_episodes: int | None = None,
        max_steps: int | None = None,
        seed: int | None = None,
        reward_fn: Reward | None = None,
        simulation: Mapping[str, object] | None = None,
        curriculum: Mapping[str, object] | bool | None = None,
        verifier_weights: Mapping[str, float] | Sequence[float] | None = None,
        compute_quota: Mapping[str, float] | None = None,
        learning_rate: float | None = None,
        batch_size: int | None = None,
        checkpoint_interval: int | None = None,
        num_envs: int | None = None,
        n_envs: int | None = None,
        description: str | None = None,
        priority: int | None = None,
        environment_version: int | None = None,
        idempotency_key: str | None = None,
    ) -> Flow[TrainingJobResource[D]]:
        """Start a training job and return its handle at once.

        What is said beside the config and inside it must agree.

        Args:
            environment_name: the environment, by name, id or handle; or one of its versions.
            env_id: the same.
            agent_id: an agent, by id, name or handle; its latest checkpoint is the start, unless
                `resume_from_checkpoint` names another one. One without any starts from nothing,
                which the record's `warnings` say.
            scenario_suite_id: the suite or the scenario to train on.
            algorithm: what trains; PPO when neither this nor the config says.
            config: the algorithm's settings; also `episodes` and `max_steps`, as published. What
                `simulation.episode_settings` says of them holds where nothing else does.
            name: what to call the run.
            verifier_ids: verifiers, by id, name or handle, that reward each episode at its end.
            resume_from_checkpoint: where to go on from, also of another job.
            num_episodes: how many episodes at most; 100 when nobody says.
            max_steps: the steps of an episode at most; 1000 when nobody says.
            seed: what makes the training repeatable; the job's record has the one that was drawn
                when nobody says.
            reward_fn: what a step is worth: an expression, a Python file of this machine, which is
                sent with the job, or a function, whose source is. Python runs in the job's worker
                only, and only where the operator allows code. The file is executed once for each
                session of the job, so sessions share nothing that it keeps in its module; what it
                changes in an observation, action or info changes only its own copy.
            simulation: speed, seed and limits of episodes.
            curriculum: from easy scenarios to hard ones, as tiers are mastered: over the tiers of
                `scenario_suite_id`, or over 1 to 4 of an environment that reads `options["tier"]`
                in its reset and says so by `metadata["takes_tiers"] = True`. A request with neither
                is refused (`curriculum_without_tiers`).
            verifier_weights: what each verifier counts, by id or in the order of `verifier_ids`.
            compute_quota: `max_wall_seconds`, `max_timesteps` and `max_processes`; the job fails
                with a checkpoint when it has used one up.
            learning_rate: the step size of the optimiser.
            batch_size: samples of one gradient step.
            checkpoint_interval: episodes between two checkpoints; a due checkpoint waits for the
                end of the update under way. The algorithms of stable-baselines3 save peaks of
                the running mean between two too.
            num_envs: sessions of the environment side by side.
            n_envs: the same.
            description: what the training is for.
            priority: from -100 to 100; a job with a higher one begins first. Above 0 is for
                operators.
            environment_version: an older version instead of the current one.
            idempotency_key: with the same key, the same job is returned instead of a second one;
                by default every call has its own.

        Raises:
            ConfigurationError: a value is not usable, or there is no environment.
            EnvironmentNotFound: there is no such environment.
            AgentNotFound: there is no such agent; nothing was started.
            ConflictError: the agent names a checkpoint that cannot be used; nothing was started.
            InvalidRequestError: the platform refuses the config; it names the key.
        """
        environment = environment_of(environment_name, env_id)
        settings = merged(
            config,
            reward_fn=reward_fn,
            simulation=simulation,
            curriculum=curriculum,
            compute_quota=compute_quota,
            learning_rate=learning_rate,
            batch_size=batch_size,
            checkpoint_interval=checkpoint_interval,
            num_envs=num_envs,
            n_envs=n_envs,
            description=description,
        )
        body = body_of(settings, algorithm, num_episodes, max_steps) | beside_config(
            agent_id=agent_id,
            name=name,
            scenario_suite_id=scenario_suite_id,
            verifier_ids=verifier_ids,
            verifier_weights=verifier_weights,
            resume_from_checkpoint=resume_from_checkpoint,
            seed=seed,
            priority=priority,
            environment_version=environment_version,
        )
        request = build.post(
            build.path("/train/{}", environment, what="environment name"),
            body,
            key=self._context.new_key() if idempotency_key is None else idempotency_key,
            kind=environment_routes.KIND,
            ref=environment,
        )
        reply = yield from ask(request, self._context)
        return self._handle(read(TrainingJob, request, reply))

    @call
    def check(
        self,
        environment_name: EnvironmentRef | EnvironmentVersion,
        agent_id: IdRef | None = None,
        scenario_suite_id: IdRef | None = None,
        algorithm: str = ALGORITHM,
        config: Mapping[str, object] | None = None,
        name: str | None = None,
        verifier_ids: Sequence[IdRef] | None = None,
        resume_from_checkpoint: CheckpointRef | None = None,
        *,
        verifier_weights: Mapping[str, float] | Sequence[float] | None = None,
        seed: int | None = None,
        priority: int | None = None,
        environment_version: int | None = None,
        beside: int = 0,
    ) -> Flow[TrainingCheck]:
        """Return what `run` would start with the same arguments; nothing is started.

        Everything else that `run` takes is in the config, as `configure_training` returns it.
        `beside` is how many jobs more are to be started with it, as a quota counts them together.

        Raises:
            ConfigurationError: a value is not usable.
            NotFoundError: something that it names is not there; or the platform has no such
                check, which is an `EnvironmentNotFound` with the code `route_not_found` of ours.
            InvalidRequestError: the platform would refuse it, and says why.
        """
        environment = environment_of(environment_name, None)
        body = body_of(merged(config), algorithm, None, None) | beside_config(
            agent_id=agent_id,
            name=name,
            scenario_suite_id=scenario_suite_id,
            verifier_ids=verifier_ids,
            verifier_weights=verifier_weights,
            resume_from_checkpoint=resume_from_checkpoint,
            seed=seed,
            priority=priority,
            environment_version=environment_version,
        )
        request = build.post(
            build.path("/train/{}/check", environment, what="environment name"),
            body,
            key=self._context.new_key(),
            kind=environment_routes.KIND,
            ref=environment,
            params={"beside": beside or None},
        )
        reply = yield from ask(request, self._context)
        return read(TrainingCheck, request, reply)

    @call
    def get(self, job_id: IdRef) -> Flow[TrainingJobResource[D]]:
        """Return the handle of the job with this id.

        Raises:
            TrainingJobNotFound: there is none.
        """
        return self._handle((yield from training_routes.get(id_of(job_id, JOB), self._context)))

    @call
    def list(
        self, status: str | None = None, limit: int | None = None
    ) -> Flow[list_[TrainingJobResource[D]]]:
        """Return the jobs, newest first; all of them, or at most `limit`.

        Args:
            status: only those with this status.
            limit: how many at most.
        """
        records = yield from collect(
            TrainingJob,
            "/api/training/jobs",
            _filters(status),
            "jobs",
            self._context,
            limit=limit,
        )
        return [self._handle(record) for record in records]

    @stream
    def iterate(self, status: str | None = None) -> Stream[TrainingJob]:
        """Yield the records that `list` would return, asking for them as they are read."""
        yield from iterate(
            TrainingJob, "/api/training/jobs", _filters(status), "jobs", self._context
        )

    @call
    def queue(self) -> Flow[TrainingQueue]:
        """The jobs that wait, in the order in which they start, and how many run meanwhile."""
        request = build.get("/api/training/queue")
        reply = yield from ask(request, self._context)
        return read(TrainingQueue, request, reply)

    @call
    def cancel(self, job_id: IdRef) -> Flow[TrainingJob]:
        """Ask a job to end, and return what the platform says to that.

        Raises:
            TrainingJobNotFound: there is no such job.
            ConflictError: it has ended otherwise; one that was cancelled is returned as it is.
        """
        return (yield from training_routes.cancel(id_of(job_id, JOB), self._context))

    def _handle(self, record: TrainingJob) -> TrainingJobResource[D]:
        return TrainingJobResource(self._driver, record)


def _count(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigurationError(
            f"{name} {value!r} is not a whole number from 1", hint="Leave it out for the default."
        )
    return value


def _filters(status: str | None) -> dict[str, str | int | None]:
    if status is not None:
        require_one_of(status, JOB_STATUSES, "a status of a training job")
    return {"status": status}
