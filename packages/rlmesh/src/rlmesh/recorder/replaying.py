"""Playing a recording again: the same seeds and actions have to give the same episodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rlcore import BundleError, ConfigurationError, EnvironmentException, IdentityError

from rlmesh.models.seeds import TRIAL_INDEX_OPTION
from rlmesh.recorder.differing import Gap, gap
from rlmesh.recorder.digests import digest_of
from rlmesh.recorder.loading import load
from rlmesh.recorder.records import EpisodeRecord, ResultSet, WorkloadRecord
from rlmesh.recorder.remaking import source_of
from rlmesh.recorder.stating import grading_of, stated
from rlmesh.recorder.trajectory import Trajectory
from rlmesh.runs.driven import Driven, takes_trial
from rlmesh.runs.targets import Targets, open_targets

if TYPE_CHECKING:
    from rlmesh.specs import EnvContract


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a replay left its recording.

    Attributes:
        workload: the workload's number in the bundle, from 0.
        episode: the episode's index in it.
        seed: its seed.
        step: after how many steps; 0 is the reset.
        field: `observation`, `reward`, `terminated`, `truncated`, or `error` where the environment
            raised; `success` where it tells that otherwise; `result.steps`, `result.reward`,
            `result.terminated` or `result.truncated` where the bundle's result says otherwise than
            its own recorded steps, and `actual` is what the result says.
        path: where in the observation, such as `$.camera[0]`.
        expected: what was recorded, as text.
        actual: what the environment gave, as text.
        max_abs_diff: the largest difference of two numbers, where there are numbers.
    """

    workload: int
    episode: int
    seed: int | None
    step: int
    field: str
    path: str
    expected: str
    actual: str
    max_abs_diff: float | None = None

    def __str__(self) -> str:
        where = "at its reset" if self.step == 0 else f"at step {self.step}"
        place = "" if self.path == "$" else f" {self.path}"
        apart = "" if self.max_abs_diff is None else f"; up to {self.max_abs_diff:g} apart"
        if self.field.startswith("result."):
            return (
                f"the result of workload {self.workload}, episode {self.episode} (seed {self.seed})"
                f" is not that of its recorded steps: its {self.field.removeprefix('result.')} is "
                f"{self.actual}, and theirs {self.expected}"
            )
        return (
            f"workload {self.workload}, episode {self.episode} (seed {self.seed}) differs {where} "
            f"in {self.field}{place}: recorded {self.expected}, now {self.actual}{apart}"
        )


@dataclass(frozen=True, slots=True)
class Replayed:
    """An episode that was played again.

    Attributes:
        workload: the workload's number in the bundle, from 0.
        episode: the episode's index in it.
        seed: its seed.
        steps: how many steps agreed with the recording.
        partly: how the recording ended beyond these steps, such as by an error of the environment,
            which was not played again; None where the whole episode was.
    """

    workload: int
    episode: int
    seed: int | None
    steps: int
    partly: str | None = None


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What became of a replay.

    Attributes:
        episodes: those that agree with the recording.
        difference: where the first one that does not leaves it; nothing was played after that.
        skipped: what could not be replayed, and why.
        verified: whether the bundle's files are those that were recorded, by its manifest.
    """

    episodes: tuple[Replayed, ...]
    difference: Difference | None = None
    skipped: tuple[str, ...] = ()
    verified: bool = True

    @property
    def matches(self) -> bool:
        """Whether every replayed step agrees with its recording; `complete` says more."""
        return self.difference is None

    @property
    def complete(self) -> bool:
        """Whether everything agrees: no episode was skipped, or replayed in part only."""
        return self.matches and not self.skipped and not self.partly

    @property
    def partly(self) -> int:
        """How many of the episodes were not replayed to their end."""
        return sum(episode.partly is not None for episode in self.episodes)

    @property
    def steps(self) -> int:
        """How many steps agreed."""
        return sum(episode.steps for episode in self.episodes)

    def __str__(self) -> str:
        if self.difference is not None:
            return str(self.difference)
        count = len(self.episodes)
        agree = "1 episode agrees" if count == 1 else f"{count} episodes agree"
        parts = [f"{agree} in all of {self.steps} steps"]
        if self.partly:
            parts.append(f"{self.partly} of them NOT to the end")
        if self.skipped:
            parts.append(f"{len(self.skipped)} NOT replayed")
        if not self.verified:
            parts.append("the bundle's files were NOT verified")
        return "; ".join(parts)


def replay(
    bundle: ResultSet | str | Path,
    env: object = None,
    *,
    workload: int | None = None,
    episodes: Iterable[int] | None = None,
    tolerance: float | None = None,
    trust_source: bool = False,
    on_episode: Callable[[Replayed], object] | None = None,
) -> ReplayReport:
    """Play recorded episodes again, and compare every step; stop at the first difference.

    Each episode is reset with its seed, and trial where the environment takes one, and stepped with
    its recorded actions. Observations (by digest, or by value where they were kept), rewards and
    flags have to be equal, bit for bit. What the bundle's result says about an episode has to be
    what its steps say.

    Args:
        bundle: a loaded one, or its path.
        env: what to play on, as `rlmesh.run` takes it: an environment, a factory, a gymnasium id,
            an address. By default what the bundle says that it was recorded on, where that is an
            environment that gymnasium knows here.
        workload: the number of the only workload to replay, from 0.
        episodes: the indices of the only episodes to replay.
        tolerance: how far two numbers may be apart instead; this needs recorded observations.
        trust_source: follow the bundle as well where it names anything else, such as a class of a
            module or an address. Whoever made the bundle can then run any code.
        on_episode: called with each episode that agrees.

    Raises:
        BundleError: the bundle is damaged.
        ConfigurationError: nothing in it can be replayed, it does not say on what, or it says what
            needs trust.
        IdentityError: the environment has other spaces than the recorded one.
        TransportError: nothing answers at the address.
    """
    if tolerance is not None and not tolerance >= 0:
        raise ConfigurationError(f"tolerance is {tolerance!r}", hint="Give a number of at least 0.")
    if not isinstance(bundle, ResultSet):
        with closing(load(bundle)) as found:
            return replay(
                found,
                env,
                workload=workload,
                episodes=episodes,
                tolerance=tolerance,
                trust_source=trust_source,
                on_episode=on_episode,
            )
    chosen, skipped = _chosen(bundle, workload, None if episodes is None else set(episodes))
    played: list[Replayed] = []
    for number, its in chosen.items():
        source = source_of(bundle.workloads[number], trusted=trust_source) if env is None else env
        with closing(_Stage(bundle.workloads[number], number, source)) as stage:
            for episode in its:
                done = stage.play(episode, tolerance)
                if isinstance(done, Difference):
                    return ReplayReport(tuple(played), done, skipped, bundle.verified)
                played.append(done)
                if on_episode is not None:
                    on_episode(done)
    return ReplayReport(tuple(played), None, skipped, bundle.verified)


def _chosen(
    found: ResultSet, workload: int | None, wanted: set[int] | None
) -> tuple[dict[int, list[EpisodeRecord]], tuple[str, ...]]:
    if workload is not None and not 0 <= workload < len(found.workloads):
        raise ConfigurationError(
            f"there is no workload {workload}: the bundle has {len(found.workloads)}"
        )
    chosen: dict[int, list[EpisodeRecord]] = {}
    skipped: list[str] = []
    for number, one in enumerate(found.workloads):
        if workload not in (None, number):
            continue
        for episode in one.episodes:
            if wanted is not None and episode.index not in wanted:
                continue
            why = _why_not(episode)
            if why is None:
                chosen.setdefault(number, []).append(episode)
            else:
                skipped.append(f"workload {number}, episode {episode.index}: {why}")
    if not chosen:
        why = skipped[0] if skipped else "the bundle has no such episode"
        raise ConfigurationError(f"nothing can be replayed: {why}")
    return chosen, tuple(skipped)


def _why_not(episode: EpisodeRecord) -> str | None:
    if episode.trajectory is None:
        return "its steps were not recorded"
    if episode.seed is None:
        return "it had no seed"
    if episode.trajectory.steps == 0:
        return "it has no step"
    return None


class _Stage:
    """The environment on which a workload is played again."""

    def __init__(self, workload: WorkloadRecord, number: int, source: object) -> None:
        self._number = number
        self._grading = grading_of(workload)
        self._targets: Targets = open_targets(source, framework="numpy")
        target = self._targets.each[0]
        if target.lanes is not None or len(self._targets.each) > 1:
            self.close()
            raise ConfigurationError(
                "a replay steps one environment, and this one has several lanes",
                hint="Give the single environment: its lanes are recorded one by one.",
            )
        self._env = cast("Driven", target.env)
        self._takes_trial = takes_trial(target.env)
        try:
            _require_same(workload, self._env.env_contract)
        except IdentityError:
            self.close()
            raise

    def close(self) -> None:
        for target in self._targets.each:
            target.close(close_env=False)
        self._targets.close()

    def play(self, episode: EpisodeRecord, tolerance: float | None) -> Replayed | Difference:
        assert episode.trajectory is not None  # others were skipped
        with episode.trajectory.load() as recorded:
            judge = _Judge(recorded, tolerance)
            differs, steps = self._differs(episode, recorded, judge)
        if differs is None:
            how = None if episode.outcome.scored else episode.error or episode.outcome.value
            return Replayed(self._number, episode.index, episode.seed, steps, how)
        field, where = differs
        return Difference(
            workload=self._number,
            episode=episode.index,
            seed=episode.seed,
            step=steps,
            field=field,
            path=where.path,
            expected=where.expected,
            actual=where.actual,
            max_abs_diff=where.largest,
        )

    def _differs(
        self, episode: EpisodeRecord, recorded: Trajectory, judge: _Judge
    ) -> tuple[tuple[str, Gap] | None, int]:
        step = 0
        info: Mapping[str, object] = {}
        if (wrong := stated(episode, recorded)) is not None:
            return wrong, recorded.steps
        try:
            options: dict[str, Any] = {}  # Any: reset options
            if self._takes_trial and episode.trial is not None:
                options = {"options": {TRIAL_INDEX_OPTION: episode.trial}}
            observation, _ = self._env.reset(seed=episode.seed, **options)
            differs = judge.observation(0, observation)
            while differs is None and step < recorded.steps:
                outcome = self._env.step(recorded.action(step))
                differs = judge.step(step, outcome)
                info = outcome[4]
                step += 1
        except EnvironmentException as error:
            last = "was reset" if step == 0 else "answered"
            return ("error", Gap("$", f"that it {last}", str(error))), step
        return differs or self._grading(episode, info), step


class _Judge:
    """Compares what an environment gives with what it gave."""

    def __init__(self, recorded: Trajectory, tolerance: float | None) -> None:
        self._recorded = recorded
        self._tolerance = tolerance
        self._digests = recorded.digests
        self._kept = recorded.observation(0) is not None
        if tolerance is not None and not self._kept:
            raise ConfigurationError(
                "observations were recorded by their digests, which are equal or not",
                hint="Leave the tolerance out, or record with observations=True.",
            )

    def observation(self, number: int, seen: object) -> tuple[str, Gap] | None:
        found = digest_of(seen).hex()
        if found == self._digests[number]:
            return None
        if not self._kept:
            expected = f"a digest of {self._digests[number]}"
            return "observation", Gap("$", expected, f"{found} of {_brief(seen)}")
        differs = gap(self._recorded.observation(number), seen, self._tolerance)
        if differs is None and self._tolerance is None:
            # Equal as numbers and not as bytes: -0.0, or another kind of NaN.
            return "observation", Gap("$", "the same bytes", "equal numbers of other bytes")
        return None if differs is None else ("observation", differs)

    def step(self, number: int, outcome: Any) -> tuple[str, Gap] | None:  # Any: as `step` gives it
        seen, reward, terminated, truncated, _ = outcome
        recorded = self._recorded
        differs = gap(float(recorded.rewards[number]), float(reward), self._tolerance)
        if differs is not None:
            return "reward", differs
        expected = bool(recorded.terminated[number])
        if expected != terminated:
            return "terminated", Gap("$", str(expected), str(terminated))
        # A run's own limits cut episodes off, of which the environment knows nothing.
        expected = bool(recorded.truncated[number]) and not bool(recorded.cut[number])
        if expected != truncated:
            return "truncated", Gap("$", str(expected), str(truncated))
        return self.observation(number + 1, seen)


def _require_same(workload: WorkloadRecord, contract: EnvContract | None) -> None:
    found: object = workload.details.get("contract")
    if found is None or contract is None:
        return
    now = contract.to_dict()
    spaces = ("observation_space", "action_space")
    if (
        not isinstance(found, dict)
        or not {"id", *spaces} <= cast("dict[str, object]", found).keys()
    ):
        raise BundleError("the bundle does not say which spaces were recorded")
    recorded = cast("dict[str, Any]", found)  # Any: JSON
    wrong = tuple(name for name in spaces if recorded[name] != now[name])
    if wrong:
        raise IdentityError(
            f"this is not the environment that was recorded: its {wrong[0]} is {now[wrong[0]]}, "
            f"and was {recorded[wrong[0]]}",
            environment=str(recorded["id"]),
            expected=recorded.get("digest"),
            actual=contract.digest,
            differences=wrong,
        )


def _brief(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 120 else f"{text[:120]}…"
