from dataclasses import dataclass, replace

from rich.console import Console
from rleaas.quickstart.compare import Agreement
from rleaas.quickstart.report import agreement_grid


@dataclass
class Episode:
    seed: int | None = 0
    steps: int = 500
    reward: float | None = 500.0
    outcome: str = "success"


def test_equal_episodes_agree() -> None:
    episodes = [Episode(seed=seed) for seed in range(3)]
    agreement = Agreement.between(episodes, [replace(e) for e in episodes])
    assert agreement.complete
    assert str(agreement.pairs[1]) == "seed 1: 500 in 500 steps, success on both"


def test_any_difference_is_found_and_told() -> None:
    one = Episode()
    for other in (
        replace(one, seed=1),
        replace(one, steps=499),
        replace(one, reward=500.0000001),
        replace(one, reward=None, outcome="env_error"),
        replace(one, outcome="failure"),
    ):
        assert len(Agreement.between([one], [other]).differing) == 1
    told = str(Agreement.between([one], [replace(one, reward=9.0, steps=9)]).pairs[0])
    assert told == "seed 0: platform 500 in 500 steps, success, local 9 in 9 steps, success"


def test_a_missing_episode_is_a_difference_and_no_episodes_are_no_agreement() -> None:
    agreement = Agreement.between([Episode()], [])
    assert [str(pair) for pair in agreement.differing] == [
        "seed 0: platform 500 in 500 steps, success, local missing"
    ]
    assert not Agreement.between([], []).complete


def test_the_grid_has_a_cell_per_seed_and_marks_the_odd_one() -> None:
    ours = [Episode(seed=seed) for seed in range(7)]
    theirs = [replace(e, reward=1.0) if e.seed == 4 else e for e in ours]
    console = Console(width=80, record=True)
    with console.capture() as captured:
        console.print(agreement_grid(Agreement.between(ours, theirs), width=80))
    shown = captured.get()
    assert shown.count("500 = 500") == 6
    assert "seed 4: 500 ≠ 1" in shown
