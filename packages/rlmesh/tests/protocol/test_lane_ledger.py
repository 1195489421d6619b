import numpy as np
from rlmesh.protocol.lane_ledger import LaneLedger


def begun(lanes: int = 3) -> LaneLedger:
    ledger = LaneLedger(lanes)
    for lane in range(lanes):
        ledger.begin(lane, f"episode {lane}", 10 + lane, 1)
    return ledger


def test_each_lane_counts_its_own_steps_and_rewards() -> None:
    ledger = begun()
    ledger.count(np.array([1.0, 2.0, 3.0]))
    ledger.count_one(1, 0.5)
    episodes = [
        ledger.finish(lane, terminated=True, truncated=False, now_ns=9) for lane in range(3)
    ]
    facts = [
        (one.episode_id, one.seed, one.lane, one.steps, one.reward, one.terminated, one.ended_ns)
        for one in episodes
        if one is not None
    ]
    assert facts == [
        ("episode 0", 10, 0, 1, 1.0, True, 9),
        ("episode 1", 11, 1, 2, 2.5, True, 9),
        ("episode 2", 12, 2, 1, 3.0, True, 9),
    ]


def test_a_lane_without_an_episode_counts_nothing() -> None:
    ledger = begun(2)
    ledger.finish(0, terminated=True, truncated=False, now_ns=2)
    ledger.count(np.array([5.0, 1.0]))
    ledger.count_one(0, 5.0)
    assert ledger.finish(0, terminated=True, truncated=False, now_ns=3) is None
    ledger.begin(0, "next", None, 4)
    ledger.count(np.array([2.0, 1.0]))
    episode = ledger.finish(0, terminated=False, truncated=True, now_ns=5)
    assert episode is not None
    assert (episode.steps, episode.reward) == (1, 2.0)


def test_an_episode_that_a_reset_cuts_off_is_reported_once_as_truncated() -> None:
    ledger = begun(2)
    ledger.count(np.array([1.0, 1.0]))
    ledger.begin(1, "another", None, 5)
    assert ledger.has_unreported
    reported = ledger.take_unreported()
    assert [(one.episode_id, one.truncated, one.steps) for one in reported] == [
        ("episode 1", True, 1)
    ]
    assert not ledger.take_unreported()


def test_an_episode_without_a_name_takes_the_next_one_for_its_lane() -> None:
    ledger = begun(2)
    ledger.begin(0, None, None, 2)
    ledger.name((0, 1), ("given", "ignored"))
    ledger.name((0, 1), ("too late", "ignored"))
    ids = [one.episode_id for one in ledger.close(3)]
    assert ids == ["episode 0", "given", "episode 1"]


def test_closing_cuts_off_every_lane() -> None:
    ledger = begun()
    ledger.finish(1, terminated=True, truncated=False, now_ns=2)
    assert [one.lane for one in ledger.close(3)] == [0, 2]
    assert ledger.close(4) == []
