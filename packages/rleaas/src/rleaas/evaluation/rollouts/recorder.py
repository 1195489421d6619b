"""Makes rollouts of what a run tells."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from rlmesh.runs.hooks import RunHooks, StepEvent
from rlmesh.runs.results import EpisodeResult

from rleaas.evaluation.rollouts.plain import plain
from rleaas.evaluation.rollouts.record import Json, RolloutRecord, StepRecord
from rleaas.evaluation.rollouts.timeline import events_of, system
from rleaas.verify.episode import state_in, tool_calls_of

REFUSED_CALLS = "refused_calls"
REWARD_BREAKDOWN = "reward_breakdown"
_NO_CALL: Mapping[str, Json] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeName:
    """What an episode is called, and what is played in it."""

    id: str
    scenario_id: str | None = None
    scenario_version: int | None = None
    repetition: int = 0


@dataclass(slots=True)
class _Open:
    steps: list[StepRecord] = field(default_factory=list[StepRecord])
    info: Mapping[str, Any] = field(default_factory=dict[str, Any])
    truncated: bool = False


class RolloutRecorder(RunHooks):
    """A hook of `rlmesh.run` that makes a `RolloutRecord` of each episode.

    An episode that is tried again counts from its last attempt. Where several are played at once,
    each has its own.

    Args:
        on_rollout: gets each episode when it has ended, with its result.
        name: what the episode of a number is called; `episode-<number>` where nothing is given.
        action_names: what the numbers of Discrete actions mean, where the environment has names.
        observations: whether what was observed is kept.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        on_rollout: Callable[[RolloutRecord, EpisodeResult], object],
        *,
        name: Callable[[int], EpisodeName] | None = None,
        action_names: Mapping[int, str] | None = None,
        observations: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._on_rollout = on_rollout
        self._name = name or _numbered
        self._names = action_names or {}
        self._observations = observations
        self._clock = clock
        self._open: dict[int, _Open] = {}

    def on_episode_start(self, *, episode: int, seed: int) -> None:
        """Begin an episode anew."""
        self._open[episode] = _Open()

    def on_step(self, event: StepEvent) -> None:
        """Keep a step."""
        episode = self._open.setdefault(event.episode, _Open())
        now = self._clock()
        step = self._step(event, len(episode.steps), now)
        episode.steps.append(step)
        episode.info = event.info
        episode.truncated = event.truncated or event.cut

    def on_episode_end(self, result: EpisodeResult) -> None:
        """Give the episode to whoever wanted it."""
        episode = self._open.pop(result.index, _Open())
        name = self._name(result.index)
        self._on_rollout(
            RolloutRecord(
                id=name.id,
                scenario_id=name.scenario_id,
                scenario_version=name.scenario_version,
                seed=result.seed,
                repetition=name.repetition,
                index=result.index,
                outcome=result.outcome.value,
                success=result.success,
                reward=_finite(result.reward),
                truncated=result.truncated or episode.truncated,
                steps=tuple(episode.steps),
                state=plain(state_in(episode.info)),
                error=result.error,
                duration_s=result.duration_s,
            ),
            result,
        )

    def _step(self, event: StepEvent, index: int, now: float) -> StepRecord:
        info = cast("dict[str, Json]", plain(event.info))
        action = plain(event.action)
        calls = self._calls(event, info)
        first: Mapping[str, Json] = calls[0] if calls else _NO_CALL
        after = round(now * 1000)
        before = after - round(event.step_ms)
        timeline = list(events_of(action, info, calls, before_ms=before, after_ms=after))
        if index == 0 and isinstance(event.observation, str):
            asked = before - round(event.predict_ms)
            timeline.insert(0, system(asked, event.observation))
        if event.terminated or event.truncated or event.cut:
            timeline.append(system(after, _ended(event)))
        reward = float(event.reward)
        return StepRecord(
            index=index,
            tool=first.get("tool"),
            action=action,
            arguments=first.get("arguments") or {},
            result=first["error"] if "error" in first else first.get("result"),
            ok=not any("error" in call for call in calls),
            reward=reward,
            reward_breakdown=_numbers(info.get(REWARD_BREAKDOWN)),
            observation=plain(event.next_observation) if self._observations else None,
            info=info,
            timeline=tuple(timeline),
        )

    def _calls(self, event: StepEvent, info: Mapping[str, Json]) -> Sequence[Mapping[str, Json]]:
        """The calls that ran, then those that were refused."""
        ran = [
            {"tool": call.name, "arguments": plain(call.arguments), "result": plain(call.result)}
            for call in tool_calls_of(event.action, event.info, self._names)
        ]
        return [*ran, *_refused(info.get(REFUSED_CALLS))]


def _numbered(episode: int) -> EpisodeName:
    return EpisodeName(id=f"episode-{episode}")


def _refused(told: Json) -> list[dict[str, Json]]:
    if not isinstance(told, list):
        return []
    return [
        {
            "tool": str(one.get("tool") or "?"),
            "arguments": one["arguments"] if isinstance(one.get("arguments"), dict) else {},
            "error": one.get("error") or "refused",
        }
        for one in cast("list[dict[str, Json]]", told)
        if isinstance(cast("object", one), dict)
    ]


def _numbers(told: Json) -> dict[str, float]:
    if not isinstance(told, dict):
        return {}
    parts = cast("dict[str, Json]", told)
    return {
        key: float(value)
        for key, value in parts.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def _ended(event: StepEvent) -> str:
    if event.terminated:
        return "episode ended: terminated by the environment"
    return "episode ended: " + ("cut off by the run" if event.cut else "truncated")


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
