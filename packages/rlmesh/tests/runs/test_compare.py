import importlib
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rlcore import ConfigurationError, EnvironmentIdentity
from rlmesh.runs.compare import Verdict, compare
from rlmesh.runs.notebook import comparison_html
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.results import EpisodeResult, RunResult

stats: Any = importlib.import_module("scipy.stats")  # Any: scipy ships no types

CARTPOLE = EnvironmentIdentity("CartPole-v1", None, "sha256:12ab")


def run_of(
    rewards: Any,  # Any: a list or an array of numbers
    *,
    model: str = "policy",
    seeds: Any = None,  # Any: a list or a range of ints
    success: list[bool] | None = None,
    environment: EnvironmentIdentity | None = CARTPOLE,
) -> RunResult:
    numbers = [float(reward) for reward in rewards]
    return RunResult(
        tuple(
            EpisodeResult(
                index=index,
                seed=index if seeds is None else seeds[index],
                steps=10,
                reward=reward,
                terminated=True,
                truncated=False,
                success=None if success is None else success[index],
            )
            for index, reward in enumerate(numbers)
        ),
        environment=environment,
        model=model,
    )


def scores(n: int = 60, seed: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(100.0, 40.0, n)


def test_a_small_gain_on_every_seed_is_found_however_different_the_seeds_are() -> None:
    base = scores()
    gained = base + np.random.default_rng(1).normal(3.0, 4.0, base.size)

    found = compare(run_of(base, model="old"), run_of(gained, model="new"))

    assert found.verdict is Verdict.BETTER
    assert found.metric == "reward"
    assert found.headline == "new is better than old, by reward"
    assert found.reward.difference == pytest.approx((gained - base).mean())
    # Unpaired, as two samples, the same numbers tell nothing.
    assert stats.ttest_ind(gained, base).pvalue > 0.5


def test_the_verdict_turns_with_the_order_of_the_runs() -> None:
    one, two = run_of(scores(), model="old"), run_of(scores() + 5.0, model="new")

    assert compare(one, two).verdict is Verdict.BETTER
    assert compare(two, one).verdict is Verdict.WORSE
    assert compare(two, one).reward.difference == pytest.approx(-5.0)


def test_the_interval_of_the_rewards_is_close_to_scipys_paired_bootstrap() -> None:
    base, other = scores(seed=2), scores(seed=3)
    expected = stats.bootstrap(
        (other - base,), np.mean, n_resamples=20_000, method="BCa", rng=np.random.default_rng(0)
    ).confidence_interval

    found = compare(run_of(base), run_of(other)).reward.interval

    tolerance = 0.06 * (expected.high - expected.low)
    assert found == pytest.approx((expected.low, expected.high), abs=tolerance)


def test_two_runs_without_a_difference_are_told_apart_in_one_of_twenty_cases_at_most() -> None:
    generator = np.random.default_rng(4)
    verdicts = [
        compare(run_of(generator.normal(size=12)), run_of(generator.normal(size=12))).verdict
        for _ in range(150)
    ]

    wrong = sum(verdict is not Verdict.INCONCLUSIVE for verdict in verdicts)
    assert wrong <= 14  # the 98th percentile of a binomial of 150 at 5 %


def test_an_inconclusive_comparison_says_how_many_pairs_would_decide_it() -> None:
    base = scores(20, seed=5)
    noise = np.random.default_rng(6).normal(size=20)
    other = base + 3.0 + 15.0 * (noise - noise.mean()) / noise.std(ddof=1)

    found = compare(run_of(base), run_of(other))

    assert found.verdict is Verdict.INCONCLUSIVE
    # Guenther: (1.96 + 0.84)^2 (15 / 3)^2 + 1.96^2 / 2 = 198.1
    assert found.reward.pairs_to_decide == 199
    assert found.headline == (
        "inconclusive after 20 pairs; about 199 would decide it, if the reward really differs "
        "as seen"
    )


def test_success_decides_where_every_pair_tells_it() -> None:
    first = run_of(scores(), success=[i % 2 == 0 for i in range(60)])
    second = run_of(scores(), success=[i % 2 == 0 or i < 20 for i in range(60)])

    found = compare(first, second)

    assert (found.metric, found.verdict) == ("success", Verdict.BETTER)
    assert found.success is not None
    assert found.success.p == pytest.approx(stats.binomtest(0, 10, 0.5).pvalue)
    assert found.success.difference == pytest.approx(10 / 60)
    assert compare(first, second, metric="reward").verdict is Verdict.INCONCLUSIVE


def test_identical_runs_are_said_to_be_identical() -> None:
    found = compare(run_of(scores()), run_of(scores()))

    assert found.identical
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.reward.pairs_to_decide is None
    assert found.headline == "identical: 60 pairs agree episode by episode"


def test_equal_means_of_different_episodes_are_not_identical() -> None:
    found = compare(run_of([1.0, 2.0] * 5), run_of([2.0, 1.0] * 5))

    assert not found.identical
    assert found.headline == "inconclusive: no difference of reward was seen in 10 pairs"


def test_what_cannot_be_paired_is_said() -> None:
    first, second = run_of(scores(10), seeds=range(10)), run_of(scores(10), seeds=range(2, 12))
    lost = replace(first.episodes[5], outcome=Outcome.ENV_ERROR, error="x")
    first = replace(first, episodes=(*first.episodes[:5], lost, *first.episodes[6:]))
    second = replace(
        second, episodes=(*second.episodes[:9], replace(second.episodes[9], seed=None))
    )

    found = compare(first, second)

    assert found.pairs == 7
    assert found.unpaired == (2, 1, 1, 1, 0)
    assert found.caveats == (
        "2 only in the first run, 1 only in the second run, 1 without a seed, 1 without a score "
        "in the first run; none of these is in a pair",
    )


def test_a_seed_that_was_played_twice_is_paired_with_its_repetition() -> None:
    first = run_of([1.0, 5.0], seeds=[7, 7])
    second = run_of([2.0, 6.0, 9.0], seeds=[7, 7, 7])

    found = compare(first, second)

    assert (found.pairs, found.reward.difference, found.unpaired.only_second) == (2, 1.0, 1)


def test_the_same_seed_of_another_task_is_another_episode() -> None:
    first, second = run_of([1.0]), run_of([2.0])
    second = replace(second, episodes=(replace(second.episodes[0], task="other"),))

    with pytest.raises(ConfigurationError, match="1 only in the first run, 1 only in the second"):
        compare(first, second)


def test_runs_without_a_seed_in_common_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="run both with the same seeds"):
        compare(run_of([1.0], seeds=[1]), run_of([1.0], seeds=[2]))


def test_runs_of_different_environments_are_refused_unless_that_is_allowed() -> None:
    other = EnvironmentIdentity("CartPole-v1", None, "sha256:ffff")
    first, second = run_of(scores()), run_of(scores(), environment=other)

    with pytest.raises(ConfigurationError, match="different environments"):
        compare(first, second)

    found = compare(first, second, allow_different_environments=True)
    assert found.caveats[0].startswith("the environments differ")


def test_the_same_contract_under_another_name_is_the_same_environment() -> None:
    registered = EnvironmentIdentity("CartPole-Prod", 3, "sha256:12ab")

    assert compare(run_of(scores()), run_of(scores(), environment=registered)).caveats == ()


def test_a_run_that_does_not_say_its_environment_is_told() -> None:
    found = compare(run_of(scores()), run_of(scores(), environment=None))

    assert found.caveats == (
        "a run does not say which environment it is of, so that was not checked",
    )


def test_different_settings_are_told() -> None:
    first = replace(run_of(scores()), settings={"max_episode_steps": 100})
    second = replace(run_of(scores()), settings={"max_episode_steps": 200})

    assert compare(first, second).caveats == (
        "max_episode_steps was 100 in the first run and 200 in the second",
    )


@pytest.mark.parametrize("pairs", [1, 2, 5])
def test_five_pairs_decide_nothing_however_large_the_difference(pairs: int) -> None:
    found = compare(run_of([0.0] * pairs), run_of([1000.0] * pairs))

    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.caveats == ("fewer than 6 pairs cannot decide anything at 95%",)


def test_six_equal_gains_are_a_verdict() -> None:
    assert compare(run_of([0.0] * 6), run_of([1000.0] * 6)).verdict is Verdict.BETTER


def test_success_that_is_not_told_cannot_be_compared() -> None:
    with pytest.raises(ConfigurationError, match="success_threshold="):
        compare(run_of(scores()), run_of(scores()), metric="success")


def test_a_metric_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="metric is 'return'"):
        compare(run_of([1.0]), run_of([1.0]), metric="return")  # type: ignore[arg-type] # wrong


def test_a_comparison_can_be_written_down_and_read() -> None:
    found = compare(run_of(scores(), model="<old>"), run_of(scores() + 5.0, model="new"))

    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (plain["verdict"], plain["reward"]["pairs"]) == ("better", 60)
    assert str(found).splitlines()[0] == "new is better than <old>, by reward"
    assert "&lt;old&gt;" in comparison_html(found)
    assert "<old>" not in comparison_html(found)


def test_settings_of_one_run_only_are_told() -> None:
    first = replace(run_of(scores()), settings={"success_threshold": 1.0})
    second = replace(run_of(scores()), settings={"max_episode_seconds": 2.0})

    caveats = compare(first, second).caveats
    assert "success_threshold was 1.0 in the first run and not given in the second" in caveats
    assert "max_episode_seconds was not given in the first run and 2.0 in the second" in caveats


def test_classes_of_environments_with_the_same_spaces_are_told_apart() -> None:
    def of(name: str) -> RunResult:
        return run_of(scores(), environment=EnvironmentIdentity(name, None, "sha256:12ab"))

    assert any("'ToyA' and 'ToyB'" in caveat for caveat in compare(of("ToyA"), of("ToyB")).caveats)
    assert compare(of("ToyA"), of("UnknownEnv-v1")).caveats == ()
