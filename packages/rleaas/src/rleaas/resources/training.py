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
from rleaas.models import EnvironmentVersion, TrainingJob
from rleaas.models.training import JOB_STATUSES
from rleaas.resources import environment_routes, training_routes
from rleaas.resources.checkpoints import CheckpointRef, checkpoint_reference
from rleaas.resources.environment_routes import EnvironmentRef, version_reference
from rleaas.resources.pages import collect, iterate
from rleaas.resources.references import IdRef, id_of, ids_of, require_one_of, require_type
from rleaas.resources.training_handle import TrainingJobResource
from rleaas.training.config import SUPPORTED_ALGORITHMS, validate_simulation

JOB = "training job"
DEFAULT_EPISODES = 100
DEFAULT_MAX_STEPS = 1000
_EPISODE_KEYS = ("episodes", "num_episodes")
_STEP_KEYS = ("max_steps_per_episode", "max_steps")


class TrainingClient(Resource[D]):
    """The training jobs of the platform."""

    def configure_training(
        self,
        algorithm: str = "PPO",
        max_steps: int = DEFAULT_MAX_STEPS,
        reward_fn: object = None,
        simulation: Mapping[str, object] | None = None,
        config: Mapping[str, object] | None = None,
    ) -> dict[str, object]:
        """Return a config for `run`, checked here; nothing is sent.

        Raises:
            ConfigurationError: a value is not usable; it is named.
        """
        require_type({} if config is None else config, Mapping, "config")
        checked = dict(config or {})
        checked["algorithm"] = known_algorithm(algorithm)
        checked["max_steps"] = _count("max_steps", max_steps)
        if reward_fn is not None:
            checked["reward_fn"] = reward_fn
        if simulation is not None:
            validate_simulation(simulation)
            checked["simulation"] = dict(simulation)
        return checked

    @call
    def run(
        self,
        environment_name: EnvironmentRef | EnvironmentVersion | None = None,
        env_id: EnvironmentRef | EnvironmentVersion | None = None,
        agent_id: IdRef | None = None,
        scenario_suite_id: IdRef | None = None,
        algorithm: str = "PPO",
        config: Mapping[str, object] | None = None,
        name: str | None = None,
        verifier_ids: Sequence[IdRef] | None = None,
        resume_from_checkpoint: CheckpointRef | None = None,
        *,
        num_episodes: int | None = None,
        max_steps: int | None = None,
        seed: int | None = None,
        environment_version: int | None = None,
        idempotency_key: str | None = None,
    ) -> Flow[TrainingJobResource[D]]:
        """Start a training job and return its handle at once.

        Args:
            environment_name: the environment, by name, id or handle; or one of its versions.
            env_id: the same.
            agent_id: an agent, by id, name or handle; it is recorded with the job, and has no other
                effect yet.
            scenario_suite_id: a suite or a scenario; training on them is not built yet, and
                refused.
            algorithm: what trains.
            config: the algorithm's settings; also `episodes` and `max_steps`, as published. What
                `simulation.episode_settings` says of them holds where nothing else does.
            name: what to call the run.
            verifier_ids: verifiers, by id, name or handle; judging by them is not built yet, and
                refused.
            resume_from_checkpoint: where to go on from.
            num_episodes: how many episodes at most; 100 when nobody says.
            max_steps: the steps of an episode at most; 1000 when nobody says.
            seed: what makes the training repeatable.
            environment_version: an older version instead of the current one.
            idempotency_key: with the same key, the same job is returned instead of a second one;
                by default every call has its own.

        Raises:
            ConfigurationError: a value is not usable, or there is no environment.
            EnvironmentNotFound: there is no such environment.
            AgentNotFound: there is no such agent; nothing was started.
            InvalidRequestError: the platform refuses the config; it names the key.
        """
        environment = _environment(environment_name, env_id)
        rest = dict(config or {})
        inside = validate_simulation(rest["simulation"]) if rest.get("simulation") else None
        episodes = _number(
            "num_episodes",
            num_episodes,
            rest,
            _EPISODE_KEYS,
            (inside and inside.num_episodes) or DEFAULT_EPISODES,
        )
        steps = _number(
            "max_steps",
            max_steps,
            rest,
            _STEP_KEYS,
            (inside and inside.max_steps) or DEFAULT_MAX_STEPS,
        )
        # `configure_training` puts it into the config, where it says the same as the argument.
        told = rest.pop("algorithm", algorithm)
        body: dict[str, object] = {
            "algorithm": known_algorithm(told),
            "num_episodes": episodes,
            "max_steps": steps,
            "config": rest,
        }
        optional: dict[str, object | None] = {
            "model": None if agent_id is None else id_of(agent_id, "agent"),
            "run_name": name,
            "scenario_id": None if scenario_suite_id is None else id_of(scenario_suite_id, "suite"),
            "verifier_ids": None if verifier_ids is None else ids_of(verifier_ids, "verifier"),
            "resume_from_checkpoint": None
            if resume_from_checkpoint is None
            else checkpoint_reference(resume_from_checkpoint),
            "seed": seed,
            "environment_version": environment_version,
        }
        body.update({key: value for key, value in optional.items() if value is not None})
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
    def cancel(self, job_id: IdRef) -> Flow[TrainingJob]:
        """Ask a job to end, and return what the platform says to that.

        Raises:
            TrainingJobNotFound: there is no such job.
            ConflictError: it has ended already.
        """
        return (yield from training_routes.cancel(id_of(job_id, JOB), self._context))

    def _handle(self, record: TrainingJob) -> TrainingJobResource[D]:
        return TrainingJobResource(self._driver, record)


def known_algorithm(algorithm: object) -> str:
    """Return the algorithm's name in the platform's spelling; whether it trains, the platform says.

    Raises:
        ConfigurationError: it is no algorithm.
    """
    name = algorithm.strip().upper() if isinstance(algorithm, str) else ""
    if name not in SUPPORTED_ALGORITHMS:
        raise ConfigurationError(
            f"{algorithm!r} is not an algorithm", hint=f"Use {', '.join(SUPPORTED_ALGORITHMS)}."
        )
    return name


def _environment(
    environment: EnvironmentRef | EnvironmentVersion | None,
    env_id: EnvironmentRef | EnvironmentVersion | None,
) -> str:
    if environment is not None:
        return version_reference(environment)
    if env_id is not None:
        return version_reference(env_id)
    raise ConfigurationError(
        "a training job needs an environment", hint="Pass environment_name= or env_id=."
    )


def _number(
    name: str,
    argument: int | None,
    config: dict[str, object],
    keys: Sequence[str],
    default: int,
) -> int:
    """Take the number from the argument or the config; where both say it, they must agree."""
    told: dict[str, object] = {} if argument is None else {name: argument}
    told.update({f"config.{key}": config.pop(key) for key in keys if key in config})
    values = {_count(key, value) for key, value in told.items()}
    if len(values) > 1:
        both = ", ".join(f"{key}={value!r}" for key, value in told.items())
        raise ConfigurationError(f"the training is told {both}", hint="Say it once.")
    return values.pop() if values else default


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
