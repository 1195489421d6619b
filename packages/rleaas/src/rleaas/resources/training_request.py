"""What is sent to start a training, or to have one checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rlcore import ConfigurationError

from rleaas.models import EnvironmentVersion
from rleaas.resources.checkpoints import CheckpointRef, checkpoint_reference
from rleaas.resources.environment_routes import EnvironmentRef, version_reference
from rleaas.resources.references import IdRef, given, id_of, ids_of
from rleaas.resources.training_settings import reward_to_send
from rleaas.training.algorithms import SUPPORTED_ALGORITHMS, advice
from rleaas.training.episode_limits import settle_episodes, settle_max_steps
from rleaas.training.simulation import validate_simulation


class Unsaid(str):
    """A default that is told from the same word of a caller."""

    __slots__ = ()


ALGORITHM: Final = Unsaid("PPO")


def body_of(
    settings: Mapping[str, object],
    algorithm: object,
    num_episodes: int | None,
    max_steps: int | None,
) -> dict[str, object]:
    """Return what trains, how long, and with which settings; a reward's file is read.

    Raises:
        ConfigurationError: a value is not usable, or contradicts another one.
    """
    rest = dict(settings)
    if rest.get("reward_fn") is not None:
        rest["reward_fn"] = reward_to_send(rest["reward_fn"])
    inside = validate_simulation(rest["simulation"]) if rest.get("simulation") else None
    episodes = settle_episodes(num_episodes, rest, inside.num_episodes if inside else None).value
    steps = settle_max_steps(max_steps, rest, inside.max_steps if inside else None).value
    # `configure_training` puts it into the config.
    return {
        "algorithm": settled_algorithm(algorithm, rest.pop("algorithm", None)),
        "num_episodes": episodes,
        "max_steps": steps,
        "config": rest,
    }


def beside_config(
    *,
    agent_id: IdRef | None,
    name: str | None,
    scenario_suite_id: IdRef | None,
    verifier_ids: Sequence[IdRef] | None,
    verifier_weights: Mapping[str, float] | Sequence[float] | None,
    resume_from_checkpoint: CheckpointRef | None,
    seed: int | None,
    priority: int | None,
    environment_version: int | None,
) -> dict[str, object]:
    """Return what is said of all this, by the names that the platform has for it."""
    resume = resume_from_checkpoint
    return given(
        model=None if agent_id is None else id_of(agent_id, "agent"),
        run_name=name,
        scenario_id=None if scenario_suite_id is None else id_of(scenario_suite_id, "suite"),
        verifier_ids=None if verifier_ids is None else ids_of(verifier_ids, "verifier"),
        verifier_weights=verifier_weights,
        resume_from_checkpoint=None if resume is None else checkpoint_reference(resume),
        seed=seed,
        priority=priority,
        environment_version=environment_version,
    )


def environment_of(
    environment: EnvironmentRef | EnvironmentVersion | None,
    env_id: EnvironmentRef | EnvironmentVersion | None,
) -> str:
    """Return the reference of the environment, by whichever argument it was given.

    Raises:
        ConfigurationError: by neither.
    """
    if environment is not None:
        return version_reference(environment)
    if env_id is not None:
        return version_reference(env_id)
    raise ConfigurationError(
        "a training job needs an environment", hint="Pass environment_name= or env_id=."
    )


def known_algorithm(algorithm: object) -> str:
    """Return the algorithm's name in the platform's spelling; whether it trains, the platform says.

    Raises:
        ConfigurationError: it is no algorithm.
    """
    name = algorithm.strip().upper() if isinstance(algorithm, str) else ""
    if name not in SUPPORTED_ALGORITHMS:
        raise ConfigurationError(
            f"{algorithm!r} is not an algorithm", code="unknown_algorithm", hint=advice(name)
        )
    return name


def settled_algorithm(algorithm: object, inside: object) -> str:
    """Return the algorithm that was said, beside the config or inside; else the default.

    Raises:
        ConfigurationError: it is none, or is said in two ways.
    """
    if inside is None:
        return known_algorithm(algorithm)
    found = known_algorithm(inside)
    if not isinstance(algorithm, Unsaid) and known_algorithm(algorithm) != found:
        raise ConfigurationError(
            f"algorithm {algorithm!r} contradicts config.algorithm {inside!r}",
            hint="Give algorithm once.",
        )
    return found
