import pytest
from rleaas.evaluation.agreement import cohens_kappa


def rated(**cells: int) -> list[tuple[str, str]]:
    return [(name[0], name[1]) for name, count in cells.items() for _ in range(count)]


def test_kappa_of_the_published_grant_proposals_is_four_tenths() -> None:
    # Fifty proposals, two readers: the worked example of Wikipedia's "Cohen's kappa".
    found = cohens_kappa(rated(yy=20, yn=5, ny=10, nn=15))

    assert (found.judged, found.observed) == (50, 0.7)
    assert found.expected == pytest.approx(0.5)
    assert found.kappa == pytest.approx(0.4)


def test_kappa_of_three_categories_is_that_of_their_margins() -> None:
    cells = {"aa": 50, "ab": 26, "ac": 24, "ba": 24, "bb": 4, "bc": 32, "ca": 6, "cb": 30, "cc": 4}
    found = cohens_kappa(rated(**cells))

    # By hand: 58 / 200 the same; margins 100, 60, 40 and 80, 60, 60.
    assert found.observed == 0.29
    assert found.expected == pytest.approx((100 * 80 + 60 * 60 + 40 * 60) / 200**2)
    assert found.kappa == pytest.approx((0.29 - 0.35) / 0.65)


def test_the_interval_is_two_errors_wide_and_stays_within_one() -> None:
    found = cohens_kappa(rated(yy=20, yn=5, ny=10, nn=15))
    # sqrt(0.7 * 0.3 / (50 * 0.5**2)) = 0.129615; 0.4 -/+ 1.959964 * 0.129615
    assert found.interval == pytest.approx((0.145959, 0.654041), abs=1e-5)
    almost = cohens_kappa(rated(yy=1, yn=1, nn=2))
    assert almost.interval is not None
    assert almost.interval[1] == 1.0


def test_raters_who_always_say_the_same_word_have_no_kappa() -> None:
    found = cohens_kappa(rated(yy=7))

    assert (found.observed, found.expected, found.kappa, found.interval) == (1.0, 1.0, None, None)


def test_nothing_judged_is_no_agreement() -> None:
    assert cohens_kappa([]).to_dict() == {
        "judged": 0,
        "observed": None,
        "expected": None,
        "kappa": None,
        "interval": None,
    }


def test_whoever_agrees_less_than_chance_is_below_zero() -> None:
    found = cohens_kappa(rated(yn=5, ny=5))
    assert found.kappa == -1.0
