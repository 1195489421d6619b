"""What a capture records."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from rlcore import ConfigurationError, MissingDependencyError

from rlmesh.recorder.records import WorkloadRecord
from rlmesh.recorder.video import encoder, require_video
from rlmesh.runs.hooks import RunContext

Json = dict[str, Any]  # Any: JSON

ObservationsToKeep: TypeAlias = bool | Literal["none"]


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """The arguments of `Recorder.capture` that say what is recorded.

    Attributes:
        cameras: names of cameras; None for all, empty for none.
        session: where pictures come from instead of the run itself.
        video_info_keys: infos that name a video of the environment's own.
        included_in_metrics: whether the episodes count.
        trajectories: whether the steps are kept.
        observations: whether the observations themselves are kept with them.
        info_keys: which infos are kept with them.
        parquet: whether the steps are written as Parquet as well.
        hud: whether episode, step, return and seed are drawn on the frames.
        replay: what a replay makes the environment from.
    """

    cameras: tuple[str, ...] | None = None
    session: RunContext | None = None
    video_info_keys: tuple[str, ...] = ("video_artifact_path", "video_url")
    included_in_metrics: bool = True
    trajectories: bool = True
    observations: bool = False
    info_keys: tuple[str, ...] = ()
    parquet: bool = False
    hud: bool = False
    replay: Json = field(default_factory=dict[str, Any])


def checked_options(
    *,
    cameras: Sequence[str] | None,
    session: RunContext | None,
    video_info_keys: Sequence[str],
    included_in_metrics: bool,
    trajectories: bool,
    observations: ObservationsToKeep,
    info_keys: Sequence[str],
    parquet: bool,
    hud: bool,
    source: str | None,
    env_kwargs: Mapping[str, object] | None,
) -> CaptureOptions:
    """Return the options.

    Raises:
        ConfigurationError: one of them cannot be.
        MissingDependencyError: cameras are asked for, or Parquet, and its extra is not installed.
    """
    if isinstance(cameras, str) or isinstance(info_keys, str) or isinstance(video_info_keys, str):
        raise ConfigurationError(
            "cameras, info_keys and video_info_keys are lists of names, not one name"
        )
    if observations not in (True, False, "none"):
        raise ConfigurationError(
            f"observations is {observations!r}", hint="Give True to keep them, or 'none'."
        )
    if parquet:
        from rlmesh.recorder.parquet import require_parquet

        require_parquet()
    if cameras:
        require_video()
    replay: Json = {} if source is None else {"source": source, "kwargs": dict(env_kwargs or {})}
    if source is None and env_kwargs:
        raise ConfigurationError("env_kwargs are what `source` is made with, and it is missing")
    try:
        json.dumps(replay, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"env_kwargs have to be recorded as JSON: {error}") from error
    return CaptureOptions(
        cameras=None if cameras is None else tuple(cameras),
        session=session,
        video_info_keys=tuple(video_info_keys),
        included_in_metrics=included_in_metrics,
        trajectories=trajectories,
        observations=observations is True,
        info_keys=tuple(info_keys),
        parquet=parquet,
        hud=hud,
        replay=replay,
    )


def checked_workload(
    model: str,
    env: str,
    task: str | None,
    config: Mapping[str, Any] | None,  # Any: JSON
) -> WorkloadRecord:
    """Return a workload that can be written down, with a config of its own.

    Raises:
        ConfigurationError: a label is no text, or the config is not what JSON holds.
    """
    for name, label in {"model": model, "env": env, "task": env if task is None else task}.items():
        if not isinstance(label, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # a user's
            raise ConfigurationError(f"{name} is {label!r}", hint="Give what to call it, as text.")
    if config is not None and not isinstance(config, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # likewise
        raise ConfigurationError(f"config is {config!r}", hint="Give a dictionary.")
    held = {key: as_json(value, f"config[{key!r}]") for key, value in (config or {}).items()}
    held = as_json(held, "config")
    return WorkloadRecord(model, env, env if task is None else task, held)


def as_json(value: Any, name: str) -> Any:  # Any: JSON
    """Return a value as JSON holds it: a copy, with lists for tuples and text for keys.

    Raises:
        ConfigurationError: JSON cannot hold it.
    """
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"{name} is what JSON cannot hold: {error}",
            hint="Give finite numbers, text, True, False, None, lists and dictionaries; "
            "float(x) and x.tolist() make them of NumPy's.",
        ) from error


def why_no_video(codec: Literal["av1", "h264"]) -> str | None:
    """Return why no video can be made here; None where it can."""
    try:
        require_video()
    except MissingDependencyError as error:
        return str(error)
    encoder(codec)
    return None
