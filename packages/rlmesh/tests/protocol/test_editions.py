import pytest
from rlcore import ConfigurationError, IncompatibleError
from rlmesh.protocol.editions import EDITION, agree, declared_edition, runs, same_generation


@pytest.mark.parametrize("ceiling", [None, "", "2026.06", "2026.06-x", "2099.01"])
def test_the_common_edition_is_chosen_below_any_ceiling_that_allows_it(
    ceiling: str | None,
) -> None:
    assert agree(offered=["2026.06"], ceiling=ceiling, declared=None) == EDITION


@pytest.mark.parametrize(
    ("offered", "ceiling", "declared"),
    [
        ([], None, None),
        (["2099.01"], None, None),
        (["2026.06-dev.x"], None, None),
        (["2026.06"], "2025.01", None),
        (["2026.06"], None, "2025.01"),
    ],
)
def test_without_a_common_edition_both_sides_are_named(
    offered: list[str], ceiling: str | None, declared: str | None
) -> None:
    with pytest.raises(IncompatibleError, match="no workflow edition suits both sides"):
        agree(offered=offered, ceiling=ceiling, declared=declared)


def test_blanks_around_an_offered_edition_do_not_matter() -> None:
    assert agree(offered=[" 2026.06 "], ceiling=None, declared=None) == EDITION


@pytest.mark.parametrize("name", ["", "2026.06", " 2026.06 ", "2026.06-rc"])
def test_this_build_runs_its_edition_and_the_cohorts_of_it(name: str) -> None:
    assert runs(name)


def test_an_edition_of_the_future_cannot_be_declared() -> None:
    with pytest.raises(ConfigurationError, match=r"'2099\.01'"):
        declared_edition("2099.01")


@pytest.mark.parametrize(("text", "declared"), [(None, None), ("  ", None), (" 2026.06", EDITION)])
def test_a_declared_edition_is_trimmed(text: str | None, declared: str | None) -> None:
    assert declared_edition(text) == declared


@pytest.mark.parametrize(
    ("theirs", "same"),
    [("rlmesh-wire-v1", True), (" rlmesh-wire-v1 ", True), ("RLMESH-WIRE-V1", False), ("", False)],
)
def test_generations_are_compared_exactly_but_for_blanks(theirs: str, same: bool) -> None:
    assert same_generation(theirs) is same
