import json

import pytest
from rleaas.training.ledger import EpisodeLedger


def ledger(
    budget: int = 200,
    *,
    target_reward: float | None = None,
    success_threshold: float | None = None,
    average_over: int = 100,
) -> EpisodeLedger:
    return EpisodeLedger(
        budget,
        clock=lambda: 0.0,
        target_reward=target_reward,
        success_threshold=success_threshold,
        average_over=average_over,
    )


def test_the_mean_is_over_the_last_hundred_episodes() -> None:
    book = ledger()
    for reward in range(150):
        book.add(float(reward), 1, {})

    assert book.avg_reward == sum(range(50, 150)) / 100
    assert book.best_reward == 149


def test_the_target_counts_only_once_a_hundred_episodes_carry_it() -> None:
    book = ledger(target_reward=10)
    for _ in range(99):
        book.add(50.0, 1, {})
    assert not book.target_reached

    book.add(50.0, 1, {})
    assert book.target_reached


def test_a_budget_below_a_hundred_is_its_own_window() -> None:
    book = ledger(2, target_reward=10)
    book.add(50.0, 1, {})
    assert (book.spent, book.remaining, book.target_reached) == (False, 0.5, False)

    book.add(50.0, 1, {})
    assert (book.spent, book.remaining, book.target_reached) == (True, 0.0, True)


def test_nothing_is_a_success_where_nothing_tells() -> None:
    assert ledger().add(1.0, 1, {}).success_rate is None


@pytest.mark.parametrize("key", ["is_success", "success", "task_success"])
def test_the_environments_own_word_beats_the_threshold(key: str) -> None:
    book = ledger(success_threshold=5)
    book.add(10.0, 1, {key: False})
    assert book.success_rate == 0

    assert book.add(10.0, 1, {}).success_rate == 0.5


def test_before_the_first_episode_there_are_no_numbers() -> None:
    progress = ledger().progress()

    assert (progress.episode, progress.avg_reward, progress.episode_reward) == (0, None, None)


def test_a_shorter_window_reaches_the_target_sooner() -> None:
    book = ledger(target_reward=10, average_over=3)

    reached: list[bool] = []
    for reward in (0.0, 9.0, 10.0, 11.0):
        book.add(reward, 1, {})
        reached.append(book.target_reached)

    assert reached == [False, False, False, True]
    assert book.avg_reward == 10


def test_a_restored_book_goes_on_as_if_nothing_had_been() -> None:
    one = ledger(average_over=3)
    for reward in range(5):
        one.add(float(reward), 2, {"is_success": reward > 3, "tier": 2})
    one.timestep = 10
    other = ledger(average_over=3)

    other.restore(json.loads(json.dumps(one.state())))

    assert other.progress() == one.progress()
    assert other.add(9.0, 1, {}) == one.add(9.0, 1, {})
    assert other.best_reward == 9
