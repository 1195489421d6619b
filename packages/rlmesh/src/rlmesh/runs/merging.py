"""Several runs of one model on one environment, as one."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from rlcore import ConfigurationError

from rlmesh.runs.telemetry import merged_rows

if TYPE_CHECKING:
    from rlmesh.runs.results import RunResult

V = TypeVar("V")


def merged(parts: "Sequence[RunResult]", *, repeats: bool) -> "RunResult":
    """Return one result over the episodes of all parts, numbered anew.

    Raises:
        ConfigurationError: the parts are of different models or environments, or an episode is in
            more than one of them and `repeats` is false.
    """
    first = parts[0]
    for part in parts[1:]:
        _require_same(first, part)
    together = [episode for part in parts for episode in part.episodes]
    if not repeats:
        _require_distinct(parts)
    advisories = [sentence for part in parts for sentence in part.advisories]
    versions, told = _agreed("package_versions", [part.package_versions for part in parts])
    machine, also = _agreed("machine", [part.machine for part in parts])
    settings, moreover = _agreed("settings", [part.settings for part in parts])
    started = [part.started_at for part in parts if part.started_at is not None]
    finished = [part.finished_at for part in parts if part.finished_at is not None]
    return replace(
        first,
        episodes=tuple(replace(episode, index=index) for index, episode in enumerate(together)),
        telemetry=merged_rows(part.telemetry for part in parts),
        # In the order in which they were first said.
        advisories=tuple(dict.fromkeys([*advisories, *told, *also, *moreover])),
        asked=sum(part.coverage.asked for part in parts),
        stopped="; ".join(part.stopped for part in parts if part.stopped) or None,
        started_at=min(started, default=None),
        finished_at=max(finished, default=None),
        package_versions=versions,
        machine=machine,
        settings=settings,
    )


def _require_same(first: "RunResult", other: "RunResult") -> None:
    ours, theirs = first.environment, other.environment
    facts = {
        "environment": (
            None if ours is None else ours.contract_digest,
            None if theirs is None else theirs.contract_digest,
        ),
        "model": (first.model, other.model),
        "model digest": (first.model_digest, other.model_digest),
    }
    for name, (one, two) in facts.items():
        if one != two:
            raise ConfigurationError(
                f"the runs are not of one {name}: {one!r} and {two!r}",
                hint="compare them with rlmesh.compare instead",
            )


def _require_distinct(parts: "Sequence[RunResult]") -> None:
    # Within one part a seed may be there twice; that run was asked for it.
    seen = Counter(
        key
        for part in parts
        for key in dict.fromkeys((item.task, item.seed) for item in part.episodes)
    )
    twice = [seed for (_, seed), count in seen.items() if count > 1 and seed is not None]
    if twice:
        raise ConfigurationError(
            f"seed {twice[0]} is in more than one run, as are {len(twice) - 1} others"
            if len(twice) > 1
            else f"seed {twice[0]} is in more than one run",
            hint="the same episodes twice are no more evidence; repeats=True counts them anyway",
        )


def _agreed(what: str, parts: Sequence[Mapping[str, V]]) -> tuple[dict[str, V], list[str]]:
    """What all parts say alike, and a sentence for each thing that they do not."""
    alike: dict[str, V] = {}
    told: list[str] = []
    for name in dict.fromkeys(name for part in parts for name in part):
        said = [part.get(name) for part in parts]
        value = said[0]
        if value is not None and all(item == value for item in said):
            alike[name] = value
        elif any(item != value for item in said):
            told.append(f"{what}: {name} differs between the merged runs")
        else:  # a setting that all parts say is None
            alike[name] = parts[0][name]
    return alike, told
