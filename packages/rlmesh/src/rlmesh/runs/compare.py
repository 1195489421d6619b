"""Whether one run is better than another: paired by seed, with an interval and a verdict."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NamedTuple

from rlcore import ConfigurationError

from rlmesh.runs.paired import (
    fewest_pairs,
    mcnemar_p,
    pairs_for_means,
    pairs_for_rates,
    rate_difference_interval,
    sign_flip_p,
)
from rlmesh.runs.statistics import Interval, bootstrap_mean_interval, require_confidence
from rlmesh.runs.tables import listed
from rlmesh.specs import UNKNOWN_ID

if TYPE_CHECKING:
    from rlmesh.runs.results import EpisodeResult, RunResult

Metric = Literal["reward", "success"]
POWER = 0.8
"""How often so many episodes as are said to decide it would find the difference."""


class Verdict(StrEnum):
    """What a comparison says about the second run."""

    BETTER = "better"
    WORSE = "worse"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Difference:
    """One number of the second run minus that of the first, over the same episodes.

    `interval` is None for fewer than two pairs. `p` is that of an exact paired test: McNemar's for
    success, all changes of sign for rewards. `pairs_to_decide` is how many pairs would find a
    difference of the size that was seen in 80 of 100 comparisons; None where none was seen.
    """

    metric: Metric
    pairs: int
    first: float
    second: float
    difference: float
    interval: Interval | None
    p: float
    verdict: Verdict
    pairs_to_decide: int | None

    def to_dict(self) -> dict[str, object]:
        """Return the difference as plain JSON values."""
        return {
            "metric": self.metric,
            "pairs": self.pairs,
            "first": self.first,
            "second": self.second,
            "difference": self.difference,
            "interval": None if self.interval is None else list(self.interval),
            "p": self.p,
            "verdict": self.verdict.value,
            "pairs_to_decide": self.pairs_to_decide,
        }

    def __str__(self) -> str:
        form = "+.1%" if self.metric == "success" else "+.2f"
        plain = form.removeprefix("+")
        bounds = ""
        if self.interval is not None:
            bounds = f" [{self.interval.low:{form}}, {self.interval.high:{form}}]"
        seen = f"{self.first:{plain}} then {self.second:{plain}}"
        return f"{self.difference:{form}}{bounds}: {seen}, {self.pairs} pairs, p = {self.p:.3g}"


class Unpaired(NamedTuple):
    """Why episodes are in no pair, and how many."""

    only_first: int
    only_second: int
    without_seed: int
    failed_first: int
    failed_second: int


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """The second of two runs against the first, the baseline.

    `identical` says that every pair has the same reward, length and outcome. `caveats` are
    sentences about what the pairs do not tell.
    """

    first: str
    second: str
    reward: Difference
    success: Difference | None
    metric: Metric
    confidence: float
    identical: bool
    unpaired: Unpaired
    caveats: tuple[str, ...]

    @property
    def decisive(self) -> Difference:
        """The difference that the verdict is about."""
        if self.metric == "success" and self.success is not None:
            return self.success
        return self.reward

    @property
    def verdict(self) -> Verdict:
        """Whether the second run is better, worse, or cannot be told from the first."""
        return self.decisive.verdict

    @property
    def pairs(self) -> int:
        """How many episodes were compared."""
        return self.reward.pairs

    @property
    def headline(self) -> str:
        """The verdict in a sentence."""
        found = self.decisive
        if self.identical:
            return f"identical: {found.pairs} pairs agree episode by episode"
        if self.verdict is not Verdict.INCONCLUSIVE:
            return f"{self.second} is {self.verdict} than {self.first}, by {found.metric}"
        if found.pairs_to_decide is None:
            return f"inconclusive: no difference of {found.metric} was seen in {found.pairs} pairs"
        return (
            f"inconclusive after {found.pairs} pairs; about {found.pairs_to_decide} would decide "
            f"it, if the {found.metric} really differs as seen"
        )

    def facts(self) -> dict[str, str]:
        """Return what was compared, and what came out."""
        facts = {
            "first": self.first,
            "second": self.second,
            "reward": str(self.reward),
            "success": "" if self.success is None else str(self.success),
            "interval": f"{self.confidence:.0%}, of the second minus the first",
        }
        facts.update({f"note {i}": caveat for i, caveat in enumerate(self.caveats, 1)})
        return {name: text for name, text in facts.items() if text}

    def to_dict(self) -> dict[str, object]:
        """Return the comparison as plain JSON values."""
        return {
            "schema": "rlmesh.comparison.v1",
            "first": self.first,
            "second": self.second,
            "verdict": self.verdict.value,
            "metric": self.metric,
            "headline": self.headline,
            "identical": self.identical,
            "confidence": self.confidence,
            "reward": self.reward.to_dict(),
            "success": None if self.success is None else self.success.to_dict(),
            "unpaired": self.unpaired._asdict(),
            "caveats": list(self.caveats),
        }

    def __repr__(self) -> str:
        return f"<Comparison: {self.headline}>"

    def __str__(self) -> str:
        return f"{self.headline}\n{listed(self.facts())}"

    def _repr_html_(self) -> str:
        from rlmesh.runs.notebook import comparison_html

        return comparison_html(self)


def compare(
    first: "RunResult",
    second: "RunResult",
    *,
    metric: Metric | None = None,
    confidence: float = 0.95,
    allow_different_environments: bool = False,
) -> Comparison:
    """Compare two runs episode by episode: what the second has more than the first, the baseline.

    Episodes of the same task and seed are a pair, and only pairs where both have a score count. A
    verdict needs both the interval of the difference to leave out zero (rewards: BCa bootstrap)
    and an exact paired test to agree (rewards: changes of sign; success: McNemar). How many pairs
    would decide an inconclusive comparison is calculated for a power of 80 % and the difference
    that was seen: Guenther (1981) for rewards, Connor (1987) for success.

    Args:
        first: the baseline.
        second: what is held against it.
        metric: what the verdict is about; by default success, where every pair tells it, and
            reward otherwise.
        confidence: of the intervals, and of a verdict.
        allow_different_environments: also compare runs whose environments' contracts differ.

    Raises:
        ConfigurationError: the environments differ, no episodes pair up, or success is to be
            compared and an episode does not tell it.
    """
    require_confidence(confidence)
    if metric not in (None, "reward", "success"):
        raise ConfigurationError(f"metric is {metric!r}", hint="give 'reward' or 'success'")
    caveats = _environments(first, second, allowed=allow_different_environments)
    pairs, unpaired = _paired(first.episodes, second.episodes)
    if not pairs:
        raise ConfigurationError(
            f"no episode of one run can be paired with one of the other: {_told(unpaired)}",
            hint="run both with the same seeds",
        )
    caveats += _unpaired_caveats(unpaired, len(pairs), confidence)
    caveats += _setting_caveats(first, second)
    success = _success(pairs, confidence)
    if metric == "success" and success is None:
        raise ConfigurationError(
            "not every episode says whether it succeeded",
            hint="run with success= or success_threshold=, or compare metric='reward'",
        )
    one, two = _names(first, second)
    return Comparison(
        first=one,
        second=two,
        reward=_reward(pairs, confidence),
        success=success,
        metric=metric or ("reward" if success is None else "success"),
        confidence=confidence,
        identical=all(_same(a, b) for a, b in pairs),
        unpaired=unpaired,
        caveats=tuple(caveats),
    )


Pairs = Sequence[tuple["EpisodeResult", "EpisodeResult"]]
_Key = tuple[str | None, int, int]


def _paired(
    first: Sequence["EpisodeResult"], second: Sequence["EpisodeResult"]
) -> tuple[list[tuple["EpisodeResult", "EpisodeResult"]], Unpaired]:
    ours, theirs = _by_key(first), _by_key(second)
    both = [(ours[key], theirs[key]) for key in ours if key in theirs]
    known = len(ours) + len(theirs)
    unpaired = Unpaired(
        only_first=len(ours) - len(both),
        only_second=len(theirs) - len(both),
        without_seed=len(first) + len(second) - known,
        failed_first=sum(not a.outcome.scored for a, _ in both),
        failed_second=sum(not b.outcome.scored for _, b in both),
    )
    return [(a, b) for a, b in both if a.outcome.scored and b.outcome.scored], unpaired


def _by_key(episodes: Sequence["EpisodeResult"]) -> dict[_Key, "EpisodeResult"]:
    """By task and seed; a seed that is there again is paired with its own repetition."""
    seen: Counter[tuple[str | None, int]] = Counter()
    found: dict[_Key, EpisodeResult] = {}
    for episode in episodes:
        if episode.seed is not None:
            name = (episode.task, episode.seed)
            found[(*name, seen[name])] = episode
            seen[name] += 1
    return found


def _reward(pairs: Pairs, confidence: float) -> Difference:
    # Scored episodes have a reward; `or 0.0` is for the type checker and changes no number.
    first = [a.reward or 0.0 for a, _ in pairs]
    second = [b.reward or 0.0 for _, b in pairs]
    differences = [b - a for a, b in zip(first, second, strict=True)]
    count = len(pairs)
    mean = sum(differences) / count
    interval = bootstrap_mean_interval(differences, confidence) if count > 1 else None
    p = sign_flip_p(differences)
    return Difference(
        metric="reward",
        pairs=count,
        first=sum(first) / count,
        second=sum(second) / count,
        difference=mean,
        interval=interval,
        p=p,
        verdict=_verdict(mean, interval, p, confidence),
        pairs_to_decide=pairs_for_means(differences, confidence, POWER),
    )


def _success(pairs: Pairs, confidence: float) -> Difference | None:
    if any(a.success is None or b.success is None for a, b in pairs):
        return None
    count = len(pairs)
    only_first = sum(bool(a.success) and not b.success for a, b in pairs)
    only_second = sum(bool(b.success) and not a.success for a, b in pairs)
    interval = rate_difference_interval(only_first, only_second, count, confidence)
    difference = (only_second - only_first) / count
    p = mcnemar_p(only_first, only_second)
    return Difference(
        metric="success",
        pairs=count,
        first=sum(bool(a.success) for a, _ in pairs) / count,
        second=sum(bool(b.success) for _, b in pairs) / count,
        difference=difference,
        interval=interval,
        p=p,
        verdict=_verdict(difference, interval, p, confidence),
        pairs_to_decide=pairs_for_rates(only_first, only_second, count, confidence, POWER),
    )


def _verdict(difference: float, interval: Interval | None, p: float, confidence: float) -> Verdict:
    beside_zero = interval is not None and (interval.low > 0 or interval.high < 0)
    if not beside_zero or p >= 1 - confidence:
        return Verdict.INCONCLUSIVE
    return Verdict.BETTER if difference > 0 else Verdict.WORSE


def _environments(first: "RunResult", second: "RunResult", *, allowed: bool) -> list[str]:
    ours, theirs = first.environment, second.environment
    if ours is None or theirs is None:
        return ["a run does not say which environment it is of, so that was not checked"]
    if ours.contract_digest == theirs.contract_digest:
        registered = ours.version is not None or theirs.version is not None
        if registered or ours.name == theirs.name or UNKNOWN_ID in (ours.name, theirs.name):
            return []
        # Names of classes are not in the contract, and no id is there to tell them apart.
        return [f"the environments are called {ours.name!r} and {theirs.name!r}; spaces agree"]
    if not allowed:
        raise ConfigurationError(
            f"the runs are of different environments: {ours} and {theirs}",
            hint="allow_different_environments=True compares them anyway",
        )
    return [f"the environments differ: {ours} and {theirs}"]


def _unpaired_caveats(unpaired: Unpaired, pairs: int, confidence: float) -> list[str]:
    caveats: list[str] = []
    if any(unpaired):
        caveats.append(f"{_told(unpaired)}; none of these is in a pair")
    fewest = fewest_pairs(confidence)
    if pairs < fewest:
        caveats.append(f"fewer than {fewest} pairs cannot decide anything at {confidence:.0%}")
    return caveats


def _setting_caveats(first: "RunResult", second: "RunResult") -> list[str]:
    ours, theirs = first.settings, second.settings
    return [
        f"{name} was {_setting(ours, name)} in the first run and {_setting(theirs, name)} in the "
        "second"
        for name in dict.fromkeys([*ours, *theirs])
        if ours.get(name) != theirs.get(name)
    ]


def _setting(settings: Mapping[str, object], name: str) -> str:
    value = settings.get(name)
    return "not given" if value is None else repr(value)


def _told(unpaired: Unpaired) -> str:
    texts = {
        "only_first": "{} only in the first run",
        "only_second": "{} only in the second run",
        "without_seed": "{} without a seed",
        "failed_first": "{} without a score in the first run",
        "failed_second": "{} without a score in the second run",
    }
    counts = unpaired._asdict()
    told = [text.format(counts[name]) for name, text in texts.items() if counts[name]]
    return ", ".join(told) or "there are none"


def _names(first: "RunResult", second: "RunResult") -> tuple[str, str]:
    one, two = first.provenance.model_text, second.provenance.model_text
    return (one, two) if one != two else (f"{one}, first", f"{two}, second")


def _same(one: "EpisodeResult", two: "EpisodeResult") -> bool:
    return (one.reward, one.steps, one.outcome) == (two.reward, two.steps, two.outcome)
