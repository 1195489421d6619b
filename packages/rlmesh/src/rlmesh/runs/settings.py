"""What a run was told, checked before anything is opened."""

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import SupportsFloat, SupportsIndex, TypeAlias, TypedDict, cast

from rlcore import ConfigurationError

from rlmesh.runs.arguments import count_given, function, hooks_given
from rlmesh.runs.budget import Limits, Plan, limits, plans, same_count, seconds_given
from rlmesh.runs.grading import Criterion, Grader, TaskName, grader
from rlmesh.runs.hooks import RunHooks
from rlmesh.runs.progress import ProgressCallback, Watcher, watcher
from rlmesh.runs.provenance import Plain
from rlmesh.runs.results import EpisodeResult, RunResult

StopRule: TypeAlias = Callable[[RunResult], bool]


class EpisodeArguments(TypedDict, total=False):
    """What can be said about the episodes of a run; `rlmesh.run` says what each means."""

    seeds: Iterable[SupportsIndex] | None
    episodes: int | None
    max_episodes: int | None
    seed: int
    max_episode_steps: int | None
    max_episode_seconds: float | None
    step_timeout_seconds: float | None
    episode_timeout_seconds: float | None
    run_timeout_seconds: float | None
    predict_timeout_seconds: float | None
    success: Criterion | None
    success_threshold: SupportsFloat | None
    task: TaskName | None
    max_failures: int | None
    retries: int
    stop_when: StopRule | None
    hooks: RunHooks | Sequence[RunHooks] | None
    on_episode: Callable[[EpisodeResult], object] | None
    progress: bool | ProgressCallback | None
    journal: str | os.PathLike[str] | None
    trial_index_base: int


class RunArguments(EpisodeArguments, total=False):
    """The keyword arguments of `rlmesh.run`, which says what each means."""

    instruction: str | None
    execution_horizon: int
    prefetch_lead: int
    num_workers: int | None
    close_env: bool
    trust_entrypoints: bool | None
    view: object
    workflow_edition: str | None


@dataclass(frozen=True, slots=True)
class Settings:
    """The checked arguments that are about episodes.

    Attributes:
        planned: the episodes, in order.
        limits: where each is cut off.
        grader: what success is.
        step_seconds: how long a call of the environment may take.
        run_seconds: how long all of it may take.
        predict_seconds: how long a prediction may take.
        max_failures: how many failures are put up with.
        retries: how often an episode without a score is tried again.
        stop_when: ends the run early.
        hooks: who is told, in order.
        on_episode: who is told of results.
        watcher: who is shown the progress.
        journal: the file that results are kept in.
        shaping: what shapes the episodes, as plain values.
    """

    planned: tuple[Plan, ...]
    limits: Limits
    grader: Grader
    step_seconds: float | None
    run_seconds: float | None
    predict_seconds: float | None
    max_failures: int | None
    retries: int
    stop_when: StopRule | None
    hooks: tuple[RunHooks, ...]
    on_episode: Callable[[EpisodeResult], object] | None
    watcher: Watcher | None
    journal: str | os.PathLike[str] | None
    shaping: Mapping[str, Plain]


def settings_of(arguments: EpisodeArguments) -> Settings:
    """Return the checked settings.

    Raises:
        ConfigurationError: an argument is wrong, or there is none of that name.
    """
    _require_known(arguments)
    planned = plans(
        seeds=arguments.get("seeds"),
        episodes=same_count(arguments.get("episodes"), arguments.get("max_episodes")),
        seed=arguments.get("seed", 0),
        trial_index_base=arguments.get("trial_index_base", 0),
    )
    bounds = limits(
        max_episode_steps=arguments.get("max_episode_steps"),
        max_episode_seconds=arguments.get("max_episode_seconds"),
        episode_timeout_seconds=arguments.get("episode_timeout_seconds"),
    )
    journal = arguments.get("journal")
    if not isinstance(cast("object", journal), str | os.PathLike | None):
        raise ConfigurationError(f"journal is {journal!r}", hint="give the path of a file")
    if journal is not None and (not os.fspath(journal) or "\0" in str(journal)):
        raise ConfigurationError(f"journal is {journal!r}", hint="give the path of a file")
    return Settings(
        planned=planned,
        limits=bounds,
        grader=grader(
            success=arguments.get("success"),
            success_threshold=arguments.get("success_threshold"),
            task=arguments.get("task"),
        ),
        step_seconds=seconds_given(arguments.get("step_timeout_seconds"), "step_timeout_seconds"),
        run_seconds=seconds_given(arguments.get("run_timeout_seconds"), "run_timeout_seconds"),
        predict_seconds=seconds_given(
            arguments.get("predict_timeout_seconds"), "predict_timeout_seconds"
        ),
        max_failures=count_given(arguments.get("max_failures"), "max_failures"),
        retries=count_given(arguments.get("retries", 0), "retries") or 0,
        stop_when=function(arguments.get("stop_when"), "stop_when"),
        hooks=hooks_given(arguments.get("hooks")),
        on_episode=function(arguments.get("on_episode"), "on_episode"),
        watcher=watcher(arguments.get("progress")),
        journal=arguments.get("journal"),
        shaping=_shaping(arguments, bounds),
    )


def _shaping(arguments: EpisodeArguments, bounds: Limits) -> dict[str, Plain]:
    """What makes two runs of the same seeds differ, leaving out what was not given."""
    threshold = arguments.get("success_threshold")
    found: dict[str, Plain] = {
        "max_episode_steps": bounds.steps,
        "max_episode_seconds": bounds.seconds,
        "success": _name_of(arguments.get("success")),
        "success_threshold": None if threshold is None else _json_float(float(threshold)),
        "task": _name_of(arguments.get("task")),
        "trial_index_base": arguments.get("trial_index_base"),
    }
    return {name: value for name, value in found.items() if value is not None}


def _json_float(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _name_of(thing: object) -> str | None:
    if thing is None or isinstance(thing, str):
        return thing
    return str(getattr(thing, "__qualname__", type(thing).__qualname__))


def _require_known(arguments: EpisodeArguments) -> None:
    known = EpisodeArguments.__optional_keys__
    for name in cast("Mapping[str, object]", arguments):
        if name not in known:
            raise ConfigurationError(f"a run has no argument {name!r}")
