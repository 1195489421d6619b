"""What is sent to start an evaluation."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, SupportsIndex, cast

from rlcore import ConfigurationError

from rleaas.models import EnvironmentVersion
from rleaas.resources.checkpoints import CheckpointRef, checkpoint_reference
from rleaas.resources.environment_routes import EnvironmentRef, version_reference
from rleaas.resources.references import IdRef, given, id_of, ids_of

_CONFIG_KEYS: Final[Mapping[str, str]] = {
    "seeds": "seeds",
    "episodes": "episodes",
    "num_episodes": "episodes",
    "base_seed": "base_seed",
    "max_steps": "max_episode_steps",
    "max_episode_steps": "max_episode_steps",
    "success_threshold": "success_threshold",
    "pass_threshold": "pass_threshold",
    "repetitions": "repetitions",
    "num_workers": "num_workers",
    "scenario_ids": "scenario_ids",
}


def who_plays(checkpoint: CheckpointRef, agent: IdRef | Mapping[str, object]) -> dict[str, object]:
    """Return what is said of who plays: a checkpoint, or an agent in place of one."""
    said: dict[str, object] = {}
    if checkpoint != "":
        said["agent_checkpoint_id"] = checkpoint_reference(checkpoint)
    if agent != "":
        said["agent"] = _agent(agent)
    return said


def what_is_played(
    config: Mapping[str, object],
    *,
    scenario_ids: Sequence[IdRef] | None,
    seeds: Sequence[int] | None,
    **numbers: float | None,
) -> dict[str, object]:
    """Return the settings that are said, as arguments or in the config.

    Raises:
        ConfigurationError: a key is unknown or said twice, or a seed is no whole number.
    """
    settings: dict[str, object | None] = {
        "scenario_ids": ids_of(scenario_ids, "scenario") if scenario_ids else None,
        "seeds": None if seeds is None else _seeds_of(seeds),
        **numbers,
    }
    _merge(settings, config)
    return {name: value for name, value in settings.items() if value is not None}


def where_and_by_whom(
    environment: EnvironmentRef | EnvironmentVersion,
    *,
    suite: IdRef,
    verifier_ids: Sequence[IdRef] | None,
    environment_version: int | None,
) -> dict[str, object]:
    """Return what is said of the environment, the suite and who judges."""
    return given(
        environment_name=None if environment == "" else version_reference(environment),
        environment_version=environment_version,
        scenario_suite_id=suite_of(suite),
        verifier_ids=ids_of(verifier_ids, "verifier") if verifier_ids else None,
    )


def _agent(agent: IdRef | Mapping[str, object]) -> str | dict[str, object]:
    if isinstance(agent, Mapping) and "kind" in agent:
        return dict(agent)
    return id_of(cast("IdRef", agent), "agent")


def suite_of(suite: IdRef) -> str | None:
    """Return the id of the suite, if one is named."""
    return None if suite == "" else id_of(suite, "suite")


def _seeds_of(seeds: object) -> list[int]:
    if isinstance(seeds, str | bytes) or not isinstance(seeds, Iterable):
        raise ConfigurationError(f"{seeds!r} is not a list of seeds", hint="Pass [1, 2, 3].")
    return [_seed(one) for one in cast("Iterable[object]", seeds)]


def _seed(seed: object) -> int:
    if isinstance(seed, bool) or not isinstance(seed, SupportsIndex):
        raise ConfigurationError(f"seed {seed!r} is not a whole number", hint="Pass [1, 2, 3].")
    return operator.index(seed)


def _merge(settings: dict[str, object | None], config: Mapping[str, object]) -> None:
    for key, value in config.items():
        field = _CONFIG_KEYS.get(key)
        if field is None:
            raise ConfigurationError(
                f"unknown key {key!r} in the evaluation's config",
                hint=f"Known are {', '.join(sorted(_CONFIG_KEYS))}.",
            )
        if value is None:
            continue
        if field == "seeds":
            value = _seeds_of(value)
        if settings[field] is not None and settings[field] != value:
            raise ConfigurationError(
                f"the evaluation is told {field}={settings[field]!r} and config {key}={value!r}",
                hint="Say it once.",
            )
        settings[field] = value
